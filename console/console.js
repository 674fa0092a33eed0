// The console: which page is shown, the node's condition above it, and what happens when the node is gone. Plain modules, no
// build step, nothing loaded from elsewhere.

import { ask } from "./admin.js";
import { beginAtTop, find, makeIcon, markStale, nowMs, onPlace, readPlace, setTitle } from "./browser.js";
import { element, say } from "./element.js";
import { duration } from "./format.js";
import { Pace } from "./pace.js";
import { showBanner, showCondition } from "./parts/condition.js";
import { permit } from "./parts/hints.js";
import { askForToken } from "./parts/token.js";
import { addThemeSwitch } from "./parts/theme.js";
import { Refused } from "./refusals.js";
import { Configuration } from "./pages/configuration.js";
import { Connection } from "./pages/connection.js";
import { Connections } from "./pages/connections.js";
import { Limits } from "./pages/limits.js";
import { Overview } from "./pages/overview.js";
import { Subject } from "./pages/subject.js";
import { Subjects } from "./pages/subjects.js";
import { Tail } from "./pages/tail.js";

const PAGES = {
  overview: { title: "Overview", make: Overview },
  live: { title: "Live", make: Tail },
  subjects: { title: "Subjects", make: Subjects },
  subject: { title: "Subject", make: Subject, under: "subjects" },
  connections: { title: "Connections", make: Connections },
  connection: { title: "Connection", make: Connection, under: "connections" },
  limits: { title: "Limits", make: Limits },
  configuration: { title: "Configuration", make: Configuration },
};
const SHORT = { configuration: "Config", connections: "Clients" };

class Console {
  constructor() {
    this.node = null;
    this.page = null;
    this.seen_ms = nowMs();
    this.main = find("main");
    find("pages").append(...Object.entries(PAGES).filter(([, page]) => !page.under).map(([path, { title }]) => element("li", {},
      element("a", { href: `#/${path}`, "data-page": path }, makeIcon(path), element("span", { class: "long" }, title),
        element("span", { class: "short" }, SHORT[path] ?? title)))));
    find("token").addEventListener("click", () => askForToken().then((isKept) => isKept && this.pace.soon(0)));
    find("skip").addEventListener("click", (event) => { event.preventDefault(); this.main.focus(); });
    addThemeSwitch(find("theme"), () => this.page?.restyle?.());
    onPlace(() => this.open(true));
    this.pace = new Pace(() => this.refresh());
    this.open(false);
  }

  // Shows the page of the address; one that is already open takes its new query itself.
  open(isChange) {
    const { path, query } = readPlace();
    const name = Object.hasOwn(PAGES, path) ? path : "overview";
    this.page?.end?.();
    const { title, make } = PAGES[name];
    this.page = new make({ query, node: this.node, refresh: () => this.pace.soon(0) });
    this.main.replaceChildren(this.page.root);
    for (const link of find("pages").querySelectorAll("a")) {
      if (link.dataset.page === (PAGES[name].under ?? name)) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    setTitle(`${title} · ${this.node?.node ?? "Godwit"}`);
    if (isChange) beginAtTop(this.main);
    this.pace.soon(0);
  }

  async refresh() {
    const page = this.page;
    try {
      this.node = await ask("/v1/node");
      this.show(this.node);
      await page.refresh(this.node);
    } catch (error) {
      this.showFailure(error, page);
    }
  }

  show(node) {
    this.seen_ms = nowMs();
    markStale(false);
    if (node.journal) showBanner("The journal's disk is failing.", `Publishes with ack=disk are refused; everything else works: ${node.journal}`);
    else say(find("banner"), "");
    showCondition(node.condition);
    permit(find("token"), node);
    say(find("token"), node.can_change ? "Admin token" : "No admin token is set");
    say(find("node-name"), node.node);
    say(find("facts"), `version ${node.version} · up ${duration(node.uptime_ms)} · clients on ${node.client} · ${node.driver}, ${node.shards} ${node.shards === 1 ? "shard" : "shards"}`);
    setTitle(`${PAGES[readPlace().path]?.title ?? "Overview"} · ${node.node}`);
  }

  showFailure(error, page) {
    if (error instanceof Refused) {
      if (error.status === 401) return showBanner("The admin token is required.", "Enter it with the button “Admin token”.");
      return page.fail ? page.fail(error) : showBanner("The node refused the request.", error.message);
    }
    if (error.name !== "Unreachable" && error.constructor.name !== "Unreachable") throw error;
    showCondition("unreachable");
    markStale(true);
    showBanner("The node does not answer.", "Retrying every second. The page shows the last known values.");
  }
}

new Console();
