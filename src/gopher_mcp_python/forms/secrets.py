"""Does a field ask for a secret? Told by its name and title, as far as words can tell."""

from __future__ import annotations

import re
import unicodedata

# Whole words; a plural s is taken off first.
_WORDS = frozenset(
    "pwd pin secret token credential otp totp mfa cvv cvc iban ssn mnemonic senha heslo haslo parola sifre "
    "losenord salasana wachtwoord passord passwort kennwort geheimzahl adgangskode jelszo bearer".split()
)
# Also at the end of a word ("userpassword"), and the same written as words of their own ("pass word", "passWord").
_PHRASES = (
    "pass word|pass wd|pass phrase|pass code|pass key|passw 0 rd|pin code|pin number|api key|private key|access key|"
    "secret key|ssh key|encryption key|signing key|auth key|access token|auth token|client secret|bearer token|"
    "security code|recovery code|backup code|verification code|one time code|2 fa|two factor code|recovery phrase|"
    "recovery key|recovery word|user pass|login pass|admin pass|root pass|db pass|database pass|smtp pass|kata sandi|"
    "seed phrase|seed word|card number|credit card|debit card|social security|"
    "mot de passe|code secret|code pin|contrasena|clave secreta|numero de tarjeta|parola chiave|palavra passe"
).split("|")
_ENDINGS = tuple(
    [phrase.replace(" ", "") for phrase in _PHRASES if len(phrase) > 5]
    + "pwd passwort kennwort wachtwoord secret token credential geheimnis geheimnummer".split()
)
_ANYWHERE = (
    "密码",
    "密碼",
    "口令",
    "秘密",
    "暗証番号",
    "パスワード",
    "비밀번호",
    "암호",
    "пароль",
    "كلمة المرور",
    "סיסמה",
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")


def _bare(text: str) -> str:
    """Without accents and what else combines with a letter; full-width letters are letters."""
    apart = unicodedata.normalize("NFKD", text).replace("ł", "l").replace("Ł", "L")
    return unicodedata.normalize("NFC", "".join(one for one in apart if not unicodedata.combining(one)))


_ANYWHERE_BARE = tuple(_bare(word).casefold() for word in _ANYWHERE)


def is_secret(text: str) -> bool:
    """Whether a name or title has a word that stands for a secret, in some of the world's languages."""
    bare = text if text.isascii() else _bare(text)
    written = [word.casefold() for word in _WORD.findall(bare)]
    words = [_singular(word) for word in written]
    if words == ["pass"] or not _WORDS.isdisjoint(words) or any(word.endswith(_ENDINGS) for word in (*written, *words)):
        return True
    line = f" {' '.join(words)} "
    if any(f" {phrase} " in line for phrase in _PHRASES):
        return True
    return not text.isascii() and any(word in bare.casefold() for word in _ANYWHERE_BARE)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
