// The live tail: one WebSocket to the client port, the JSON wire, the newest messages on top.
// However fast they come, a frame of the screen shows the newest ROWS_MAX of them and counts the rest.

import { clock, element, row } from "/format.js";

const ROWS_MAX = 200;
const CONTENT_CHARACTERS_MAX = 2000;
const RETRY_MS = 2000;

export class Tail {
  constructor(body, status) {
    this.body = body;
    this.status = status;
    this.socket = null;
    this.waiting = [];
    this.count = 0;
    this.isPaused = false;
    this.retry = 0;
  }

  // Begins anew: the pattern's snapshots, then what is live.
  open(address, pattern, token) {
    this.close();
    this.body.replaceChildren();
    this.waiting = [];
    this.count = 0;
    this.connect(address, pattern, token);
  }

  close() {
    clearTimeout(this.retry);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    if (!isPaused) this.draw();
  }

  connect(address, pattern, token) {
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${address}/v1/live`, "godwit.v1.json");
    this.socket = socket;
    this.say("connecting");
    socket.onopen = () => {
      const commands = [{ id: 2, subscribe: pattern }];
      if (token) commands.unshift({ id: 1, connect: { token, client: "godwit-page/1" } });
      socket.send(JSON.stringify(commands));
    };
    socket.onmessage = (event) => [JSON.parse(event.data)].flat().forEach((told) => this.take(told, pattern));
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      const isFinal = event.code >= 4000 && event.code <= 4099;
      this.say(`closed (${event.code})${isFinal ? "" : ", trying again"}`, true);
      if (!isFinal) this.retry = setTimeout(() => this.connect(address, pattern, token), RETRY_MS);
    };
  }

  take(told, pattern) {
    if (told.error) this.say(`${told.name}: ${told.reason}`, true);
    else if (told.ok === "subscribed") this.say(`tailing ${pattern}`);
    else if (told.message !== undefined) this.show(told.time, told.message, told.at ?? "", contentOf(told));
    else if (told.gap !== undefined) this.show(Date.now(), told.gap, told.at ?? "", `gap: ${told.reason}, missed ${told.missed ?? "an unknown number"}`, "told");
    else if (told.dropped !== undefined) this.show(Date.now(), told.dropped, "", `dropped ${told.count}`, "told");
  }

  show(time, subject, at, text, kind = "") {
    this.count += 1;
    this.waiting.push([time, subject, at, text, kind]);
    if (this.waiting.length > ROWS_MAX) this.waiting.shift();
    if (this.waiting.length === 1 && !this.isPaused) requestAnimationFrame(() => this.draw());
  }

  draw() {
    if (this.isPaused) return;
    const rows = this.waiting.reverse().map(([time, subject, at, text, kind]) => row(
      [clock(time), subject, at, element("td", text, { class: "text" })], kind ? { class: kind } : {}));
    this.waiting = [];
    this.body.prepend(...rows);
    while (this.body.rows.length > ROWS_MAX) this.body.lastElementChild.remove();
    this.body.dataset.count = this.count;
  }

  say(text, isError = false) {
    this.status.textContent = text;
    this.status.classList.toggle("error", isError);
  }
}

function contentOf(told) {
  const text = told.text ?? (told.bytes !== undefined ? `base64 ${told.bytes}` : JSON.stringify(told.content));
  return text.length > CONTENT_CHARACTERS_MAX ? `${text.slice(0, CONTENT_CHARACTERS_MAX)}…` : text;
}
