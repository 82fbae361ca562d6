// Does with a real browser what a line of JSON says, and answers with a line of JSON: {"value": ...} or {"error": "..."}.
// node driver.cjs <folder of playwright-core> <chromium>

const { createInterface } = require("node:readline");
const { chromium } = require(process.argv[2]);

const MOST = 15000; // milliseconds for anything
const tabs = new Map();
let browser;

async function launched() {
  browser ??= await chromium.launch({
    executablePath: process.argv[3],
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server", "--font-render-hinting=none"],
  });
  return browser;
}

const commands = {
  async open({ tab, width, height, dark, touch }) {
    const context = await (await launched()).newContext({
      viewport: { width, height }, colorScheme: dark ? "dark" : "light", hasTouch: touch, isMobile: touch,
      reducedMotion: "reduce", locale: "en-GB", permissions: ["clipboard-read", "clipboard-write"],
    });
    context.setDefaultTimeout(MOST);
    const page = await context.newPage();
    const told = { context, page, faults: [], popups: [], held: new Map(), host: null };
    await page.exposeBinding("__violated", (_, text) => { told.faults.push(`policy: ${text}`); });
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) =>
        window.__violated(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
    });
    page.on("pageerror", (error) => told.faults.push(`script: ${error.message}`));
    page.on("console", (message) => {
      // A refusal of the server's, a broken connection: told on the page, and logged by the browser itself.
      if (message.type() === "error" && !/Failed to load resource|net::ERR_/.test(message.text())) told.faults.push(`console: ${message.text()}`);
    });
    page.on("dialog", (dialog) => { told.faults.push(`dialog: ${dialog.message()}`); dialog.dismiss().catch(() => {}); });
    page.on("request", (request) => {
      const { host, protocol } = new URL(request.url());
      if (told.host && protocol.startsWith("http") && host !== told.host) told.faults.push(`request to ${host}`);
    });
    page.on("popup", (popup) => { told.popups.push(popup); });
    tabs.set(tab, told);
  },
  async go({ told, page, url }) {
    told.host = new URL(url).host;
    await page.goto(url);
  },
  click: ({ page, selector }) => page.click(selector),
  fill: ({ page, selector, text }) => page.fill(selector, text),
  choose: async ({ page, selector, value }) => { await page.selectOption(selector, { label: value }); },
  type: ({ page, text }) => page.keyboard.type(text),
  press: ({ page, key }) => page.keyboard.press(key),
  upload: ({ page, selector, path }) => page.setInputFiles(selector, path),
  wait: async ({ page, selector, state }) => { await page.waitForSelector(selector, { state }); },
  until: async ({ page, expression }) => { // not waitForFunction: the page's policy forbids what it does with a string
    const end = Date.now() + MOST;
    while (!(await page.evaluate(expression))) {
      if (Date.now() > end) throw new Error("this has not become true");
      await page.waitForTimeout(20);
    }
  },
  text: ({ page, selector }) => page.innerText(selector),
  texts: ({ page, selector }) => page.locator(selector).allInnerTexts(),
  value: ({ page, selector }) => page.inputValue(selector),
  run: ({ page, expression }) => page.evaluate(expression),
  focused: ({ page }) => page.evaluate(() => {
    const one = document.activeElement;
    const label = one.getAttribute("aria-label") ?? one.labels?.[0]?.innerText ?? one.innerText ?? "";
    return label.replace(/\s+/gu, " ").trim();
  }),
  tree: ({ page }) => page.locator("body").ariaSnapshot(),
  popups: async ({ told }) => {
    await Promise.all(told.popups.map((popup) => popup.waitForLoadState().catch(() => {})));
    return told.popups.map((popup) => popup.url());
  },
  faults: ({ told }) => told.faults.splice(0),
  hold: async ({ told, page, pattern }) => {
    const held = { waiting: [] };
    told.held.set(pattern, held);
    await page.route(pattern, (route) => (held.isOpen ? route.fallback() : held.waiting.push(route)));
  },
  held: ({ told, pattern }) => told.held.get(pattern).waiting.length,
  release: async ({ told, pattern, answer }) => {
    const held = told.held.get(pattern);
    held.isOpen = true;
    for (const route of held.waiting.splice(0)) await (answer === "broken" ? route.abort() : route.continue());
  },
  reload: async ({ page }) => { await page.reload(); },
  back: async ({ page }) => { await page.evaluate(() => history.back()); },
  offline: ({ told, is_offline: isOffline }) => told.context.setOffline(isOffline),
  picture: async ({ page, path, whole }) => { await page.screenshot({ path, fullPage: whole, animations: "disabled" }); },
  close: ({ told, tab }) => { tabs.delete(tab); return told.context.close(); },
};

async function main() {
  for await (const text of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(text);
    const told = tabs.get(asked.tab);
    let reply;
    try {
      reply = { value: (await commands[asked.do]({ ...asked, told, page: told?.page })) ?? null };
    } catch (error) {
      reply = { error: error.message };
    }
    process.stdout.write(JSON.stringify(reply) + "\n");
  }
  await browser?.close();
}

main();
