// One WebSocket to the client port, the JSON encoding: what any client may do there, under the same rights. Owns connecting again and going on
// where it stood, also after the tab was hidden (while hidden there is no connection).

import { cancel, isHidden, keepForTab, later, onVisibility, openSocket, readFromTab } from "../browser.js";

const RETRY_MS = 2000;
const TOKEN = "godwit.client.token";
const CLIENT = "godwit-console/1";

export const readClientToken = () => readFromTab(TOKEN);
export const keepClientToken = (token) => keepForTab(TOKEN, token);

export class Live {
  // `onPush(object)`: messages, gaps and the like; `onState(text, isFault)`: one sentence about the connection.
  constructor(port, { onPush, onState }) {
    Object.assign(this, { port, onPush, onState });
    this.wanted = null;
    this.place = {};
    this.unmarked = new Map(); // where each subject of a pattern stands, of those heard since the last resume token
    this.waiting = new Map();
    this.next_id = 2; // of the next command; 1 is the connect
    this.stop = onVisibility(() => (isHidden() ? this.leave() : this.wanted && this.connect()));
  }

  // Listens to a selector: `options` are those of `subscribe`, for the first time; afterwards it resumes at its position.
  listen(selector, options = {}) {
    this.end(false);
    this.wanted = { selector, options };
    this.place = {};
    this.unmarked.clear();
    this.connect();
  }

  // Subscribes to the same selector again, with other options, on the same connection. Pending publishes keep their answers.
  listenAgain(options) {
    this.wanted.options = options;
    this.place = {};
    this.unmarked.clear();
    this.socket.send(JSON.stringify([{ id: this.next_id++, unsubscribe: this.wanted.selector }, this.subscribe()]));
  }

  // The command; what is pushed before its answer belongs to a subscription before it.
  subscribe() {
    this.subscription = this.next_id++;
    this.isSubscribed = false;
    const { selector, options } = this.wanted;
    return { id: this.subscription, subscribe: selector, ...options, ...this.place };
  }

  end(isFinal = true) {
    this.wanted = null;
    this.leave();
    if (isFinal) this.stop();
  }

  leave() {
    cancel(this.retry);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.refuse?.(new Error("not connected to the client port"));
    for (const { reject } of this.waiting.values()) reject(new Error("the connection ended"));
    this.waiting.clear();
  }

  connect() {
    this.leave();
    const socket = openSocket(this.port, "/v1/live", "godwit.v1.json");
    this.socket = socket;
    this.onState("connecting", false);
    this.opened = new Promise((resolve, reject) => {
      this.refuse = reject;
      socket.onopen = () => {
        const token = readClientToken();
        socket.send(JSON.stringify([{ id: 1, connect: token ? { token, client: CLIENT } : { client: CLIENT } }, this.subscribe()]));
        resolve();
      };
    });
    this.opened.catch(() => {}); // nobody need wait for it
    socket.onmessage = (event) => [parse(event.data)].flat().forEach((push) => this.take(push));
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      this.leave();
      const isFinal = event.code >= 4000 && event.code <= 4099;
      this.onState(`closed (${event.code}${event.reason ? `, ${event.reason}` : ""})${isFinal ? "" : ", reconnecting"}`, true);
      if (!isFinal && this.wanted) this.retry = later(() => this.connect(), RETRY_MS);
    };
  }

  // Sends one command, once the connection is there; its answer, or an error with the node's reason. `content` is JSON as it was written,
  // to be sent as it is.
  async send(command, content) {
    await this.opened;
    return new Promise((resolve, reject) => {
      if (this.socket?.readyState !== 1) return reject(new Error("not connected to the client port"));
      const id = this.next_id++;
      this.waiting.set(id, { resolve, reject });
      const text = JSON.stringify({ id, ...command });
      this.socket.send(content === undefined ? text : `${text.slice(0, -1)},"content":${content}}`);
    });
  }

  // Shows another token on the connection that is there.
  renew(token) {
    keepClientToken(token);
    return this.send({ connect: { token, client: CLIENT } });
  }

  // Whether a resume from a resume token brought it again: what came after the resume token comes twice.
  hasHeard({ message, gap, at }) {
    const subject = message ?? gap;
    if (!at || subject === undefined) return false;
    const [epoch, sequence] = at.split(".");
    const stand = this.unmarked.get(subject);
    if (message !== undefined && stand?.epoch === epoch && Number(sequence) <= stand.sequence) return true;
    this.unmarked.set(subject, { epoch, sequence: Number(sequence) });
    return false;
  }

  take(push) {
    const waiting = this.waiting.get(push.id);
    if (waiting) {
      this.waiting.delete(push.id);
      return push.error ? waiting.reject(new Error(`${push.name}: ${push.reason}`)) : waiting.resolve(push);
    }
    if (push.error) return this.onState(`${push.name}: ${push.reason}`, true);
    if (push.ok === "subscribed" && push.id === this.subscription) {
      this.isSubscribed = true;
      this.onState(`subscribed to ${this.wanted?.selector}`, false);
    }
    if (!this.isSubscribed) return;
    if (push.resume_token) {
      this.place = { since: push.resume_token };
      this.unmarked.clear();
    } else if (push.pattern !== undefined && this.hasHeard(push)) return;
    else if (push.at && push.pattern === undefined) this.place = { after: push.at };
    if (push.ok === undefined || push.ok === "subscribed") this.onPush(push);
  }
}

// Numbers that JavaScript cannot hold are shown as they were written, where the browser can keep them.
const LONG_NUMBER = /\d{16}/;
function parse(text) {
  if (!LONG_NUMBER.test(text) || !JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_, value, { source }) => (typeof value === "number" && String(value) !== source ? JSON.rawJSON(source) : value));
}
