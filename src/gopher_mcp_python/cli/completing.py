"""Completion scripts, made from the parser.

All three are one walk over the words before the cursor: an option that takes a value takes the next word, a word that
is a command goes one level down. What may stand at the cursor is then looked up in tables, and the tables are all that
differs between versions of `gopher-mcp`. A script starts no program, so that the Tab key is quick.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from .parsing import subparsers

__all__ = ["SCRIPTS", "Level", "words_of"]

_FILES = ("FILE", "FOLDER", "FILE|URL")


@dataclass
class Level:
    """What may follow one command: `path` is "" for gopher-mcp itself, then "run", "token", "token add", ..."""

    path: str
    options: dict[str, str] = field(default_factory=dict)
    """Options with their help."""
    takes: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Those that take a value, and which: names to choose from, or None for a file, or () for what nobody can guess."""
    words: dict[str, str] = field(default_factory=dict)
    """Commands one level down, or values of the first argument, with their help."""
    commands: tuple[str, ...] = ()
    """Those of the words that are commands."""


def words_of(parser: argparse.ArgumentParser, path: str = "") -> list[Level]:
    """Every level of the command line."""
    level, below = Level(path), dict(subparsers(parser))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            level.words |= {choice.dest: _plain(choice.help) for choice in action._choices_actions}
        elif not action.option_strings:
            level.words |= {str(choice): "" for choice in action.choices or ()}
        else:
            _add_option(level, action)
    level.commands = tuple(below)
    return [level, *(found for name, one in below.items() for found in words_of(one, f"{path} {name}".strip()))]


def _add_option(level: Level, action: argparse.Action) -> None:
    for name in action.option_strings:
        if action.help != argparse.SUPPRESS:
            level.options[name] = _plain(action.help)
        if action.nargs != 0 and action.nargs != "?":  # what may have a value is not asked for one
            chosen = tuple(map(str, action.choices)) if action.choices else ()
            level.takes[name] = chosen or (None if action.metavar in _FILES else ())


def _plain(text: str | None) -> str:
    """Help on one line, without what any of the shells would take for a sign of its own."""
    line = " ".join((text or "").split())
    return "".join(sign for sign in line if sign not in "'\"`\\$%:[]{}|").partition(" (")[0].partition(";")[0]


def _choices(levels: Iterable[Level]) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """What an option takes, by "path option"."""
    for level in levels:
        for name, chosen in level.takes.items():
            if chosen != ():
                yield f"{level.path} {name}".strip(), chosen


# ---- bash -----------------------------------------------------------------------------------------------------------

_BASH = r"""# bash completion for gopher-mcp, made by `gopher-mcp completion bash`
_gopher_mcp() {
    local i word path="" pending="" plain=0 cur="${COMP_WORDS[COMP_CWORD]}" known=""
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${COMP_WORDS[i]}"
        if [[ $word == "=" ]]; then continue; fi
        if [[ -n $pending ]]; then pending=""; continue; fi
        if [[ $word == "--" ]]; then plain=1; continue; fi
        if ((plain)); then continue; fi
        case "${path:+$path }$word" in
@COMMANDS@)
            path="${path:+$path }$word" ;;
@TAKES@)
            pending="$word" ;;
        esac
    done
    if [[ $cur == "=" ]]; then cur=""; fi
    if [[ -n $pending ]]; then
        case "${path:+$path }$pending" in
@VALUES@
        esac
    elif [[ $cur == -* ]] && ! ((plain)); then
        case "$path" in
@OPTIONS@
        esac
    else
        case "$path" in
@WORDS@
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$known" -- "$cur")
}
complete -o default -F _gopher_mcp gopher-mcp
"""
_BASH_FILES = 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return'


def bash(levels: list[Level]) -> str:
    """The script for bash (4.0 and newer)."""
    return _by_cases(_BASH, levels, _known, _BASH_FILES, "return")


def _known(words: Iterable[str]) -> str:
    return f'known="{" ".join(words)}"'


# ---- zsh ------------------------------------------------------------------------------------------------------------

_ZSH = r"""#compdef gopher-mcp
# zsh completion for gopher-mcp, made by `gopher-mcp completion zsh`
_gopher_mcp() {
    local word where="" pending="" plain="" cur="${words[CURRENT]}"
    local -a known
    for word in "${(@)words[2,CURRENT-1]}"; do
        if [[ -n $pending ]]; then pending=""; continue; fi
        if [[ $word == "--" ]]; then plain=1; continue; fi
        if [[ -n $plain ]]; then continue; fi
        case "${where:+$where }$word" in
@COMMANDS@)
            where="${where:+$where }$word" ;;
@TAKES@)
            pending="$word" ;;
        esac
    done
    if [[ -z $pending && -z $plain && $cur == --*=* ]]; then
        pending="${cur%%=*}"
        compset -P '*='
    fi
    if [[ -n $pending ]]; then
        case "${where:+$where }$pending" in
@VALUES@
        esac
        _describe -t values value known
    elif [[ $cur == -* && -z $plain ]]; then
        case "$where" in
@OPTIONS@
        esac
        _describe -o -t options option known
    else
        case "$where" in
@WORDS@
        esac
        if (( ${#known} )); then _describe -t commands command known; else _files; fi
    fi
}
if [[ ${funcstack[1]} == _gopher-mcp ]]; then _gopher_mcp "$@"; else compdef _gopher_mcp gopher-mcp; fi
"""


def zsh(levels: list[Level]) -> str:
    """The script for zsh: as a file _gopher-mcp in $fpath, or sourced after compinit."""
    return _by_cases(_ZSH, levels, _described, "_files; return", "return 1")


def _described(words: dict[str, str]) -> str:
    return "known=(" + " ".join(f"'{word}:{text}'" if text else f"'{word}'" for word, text in words.items()) + ")"


# ---- fish -----------------------------------------------------------------------------------------------------------

_FISH = r"""# fish completion for gopher-mcp, made by `gopher-mcp completion fish`
function __gopher_mcp_complete
    set -l cur (commandline -ct)
    set -l path ""
    set -l pending ""
    set -l plain ""
    for word in (commandline -opc)[2..-1]
        if test -n "$pending"
            set pending ""
            continue
        end
        test -n "$plain"; and continue
        if test "$word" = --
            set plain 1
            continue
        end
        switch (string trim -- "$path $word")
            case @COMMANDS@
                set path (string trim -- "$path $word")
            case @TAKES@
                set pending $word
        end
    end
    set -l front ""
    if test -z "$pending" -a -z "$plain"; and string match -q -- '--*=*' "$cur"
        set pending (string replace -r -- '=.*' '' "$cur")
        set front "$pending="
        set cur (string replace -r -- '^[^=]*=' '' "$cur")
    end
    if test -n "$pending"
        switch (string trim -- "$path $pending")
@VALUES@
        end
        return
    end
    if string match -q -- '-*' "$cur"; and test -z "$plain"
        switch "$path"
@OPTIONS@
        end
        return
    end
    switch "$path"
@WORDS@
        case '*'
            __fish_complete_path "$cur"
    end
end
complete -c gopher-mcp -f -a '(__gopher_mcp_complete)'
"""


def fish(levels: list[Level]) -> str:
    """The script for fish (3.0 and newer)."""
    return _filled(
        _FISH,
        COMMANDS=" ".join(f"'{path}'" for path in _command_paths(levels)),
        TAKES=" ".join(f"'{path}'" for path in _taking(levels)),
        VALUES="\n".join(_fish_values(levels)),
        OPTIONS="\n".join(_fish_lines(level.path, level.options) for level in levels),
        WORDS="\n".join(_fish_lines(level.path, level.words) for level in levels if level.words),
    )


def _fish_values(levels: list[Level]) -> Iterator[str]:
    for name, chosen in _choices(levels):
        if chosen is None:
            what = '__fish_complete_path "$cur"'
        else:
            what = "printf '%s\\n' " + " ".join(f'"$front"{one}' for one in chosen)
        yield f"            case '{name}'\n                {what}"


def _fish_lines(path: str, words: dict[str, str]) -> str:
    pairs = " ".join(f"'{word}' '{text}'" for word, text in words.items())
    return f"        case '{path}'\n            printf '%s\\t%s\\n' {pairs}"


# ---- all ------------------------------------------------------------------------------------------------------------


def _command_paths(levels: list[Level]) -> list[str]:
    return [f"{level.path} {name}".strip() for level in levels for name in level.commands]


def _taking(levels: list[Level]) -> list[str]:
    return [f"{level.path} {name}".strip() for level in levels for name in level.takes]


def _patterns(paths: list[str], columns: int) -> str:
    return " " * columns + "|".join(f'"{path}"' for path in paths)


def _by_cases(
    script: str, levels: list[Level], known: Callable[[dict[str, str]], str], files: str, nothing: str
) -> str:
    """A script whose choices are the branches of a `case`: bash's and zsh's.

    known: the statement that these words, with their help, may follow; files: that a file's name may; nothing: that
    nobody can guess what may.
    """

    def branch(name: str, statement: str) -> str:
        return f'            "{name}") {statement} ;;'

    values = [
        branch(name, files if chosen is None else known(dict.fromkeys(chosen, ""))) for name, chosen in _choices(levels)
    ]
    return _filled(
        script,
        COMMANDS=_patterns(_command_paths(levels), 12),
        TAKES=_patterns(_taking(levels), 12),
        VALUES="\n".join([*values, f"            *) {nothing} ;;"]),
        OPTIONS="\n".join(branch(level.path, known(level.options)) for level in levels),
        WORDS="\n".join(branch(level.path, known(level.words)) for level in levels),
    )


def _filled(script: str, **parts: str) -> str:
    for name, text in parts.items():
        script = script.replace(f"@{name}@", text)
    return script


SCRIPTS: dict[str, Callable[[list[Level]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
"""What makes the script of a shell."""
