// The console of dispatch: which page is shown, the key, and what happens when dispatch is gone. It shares its parts with the node's.

import { beginAtTop, find, makeIcon, markStale, onPlace, readPlace, setTitle } from "../browser.js";
import { element, say } from "../element.js";
import { Pace } from "../pace.js";
import { showBanner, showCondition } from "../parts/condition.js";
import { addThemeSwitch } from "../parts/theme.js";
import { Refused, Unreachable } from "../refusals.js";
import { ask, readKey } from "./api.js";
import { askForKey } from "./key.js";
import { Failures } from "./pages/failures.js";
import { Notification } from "./pages/notification.js";
import { Notifications } from "./pages/notifications.js";
import { Providers } from "./pages/providers.js";
import { Receiver } from "./pages/receiver.js";
import { Receivers } from "./pages/receivers.js";
import { Send } from "./pages/send.js";
import { Templates } from "./pages/templates.js";
import { Webhooks } from "./pages/webhooks.js";

const PAGES = {
  notifications: { title: "Notifications", make: Notifications },
  notification: { title: "Notification", make: Notification, under: "notifications" },
  send: { title: "Send", make: Send },
  receivers: { title: "Receivers", make: Receivers },
  receiver: { title: "Receiver", make: Receiver, under: "receivers" },
  failures: { title: "Failures", make: Failures },
  templates: { title: "Templates", make: Templates },
  webhooks: { title: "Webhooks", make: Webhooks },
  providers: { title: "Providers", make: Providers },
};
const SHORT = { notifications: "Sent" };

class Console {
  constructor() {
    this.main = find("main");
    find("pages").append(...Object.entries(PAGES).filter(([, page]) => !page.under).map(([name, { title }]) => element("li", {},
      element("a", { href: `#/${name}`, "data-page": name }, makeIcon(name), element("span", { class: "long" }, title), element("span", { class: "short" }, SHORT[name] ?? title)))));
    find("token").addEventListener("click", () => askForKey().then((isKept) => isKept && this.open(false)));
    find("skip").addEventListener("click", (event) => { event.preventDefault(); this.main.focus(); });
    addThemeSwitch(find("theme"), () => {});
    onPlace(() => this.open(true));
    this.pace = new Pace(() => this.refresh());
    this.open(false);
  }

  open(isChange) {
    const { path, query } = readPlace();
    const name = Object.hasOwn(PAGES, path) ? path : "notifications";
    const { title, make, under } = PAGES[name];
    this.page = new make({ query, refresh: () => this.pace.soon(0) });
    this.main.replaceChildren(this.page.root);
    for (const link of find("pages").querySelectorAll("a")) {
      if (link.dataset.page === (under ?? name)) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    setTitle(`${title} · Godwit`);
    if (isChange) beginAtTop(this.main);
    this.pace.soon(0);
  }

  async refresh() {
    const page = this.page;
    if (!readKey()) return showBanner("An API key is required.", "Enter it with the button “API key”. The first one is in the file dispatch/admin.key of the data directory.");
    try {
      await page.refresh?.(ask);
      showCondition("ready");
      markStale(false);
      say(find("banner"), "");
    } catch (error) {
      this.showFailure(error, page);
    }
  }

  showFailure(error, page) {
    if (error instanceof Unreachable) {
      showCondition("unreachable");
      markStale(true);
      return showBanner("Dispatch does not answer.", "Retrying every second. The page shows the last known values.");
    }
    if (!(error instanceof Refused)) throw error;
    showCondition("ready");
    if (error.status === 401) return showBanner("The API key is not valid.", "Enter another with the button “API key”.");
    if (page.fail) return page.fail(error);
    showBanner("Dispatch refused the request.", error.message);
  }
}

new Console();
