// One client for JavaScript, timed: reads COUNT messages of a subject, prints the CPU of each in microseconds.
//
//     node receive.mjs FOLDER URL SUBJECT COUNT WARM ENCODING       FOLDER holds the client's src
//
// The first WARM messages do not count. It uses nothing but what every version of the client has.

import { pathToFileURL } from "node:url";

const [folder, url, subject, count, warm, encoding] = process.argv.slice(2);
const { Client } = await import(pathToFileURL(`${folder}/src/node.js`).href);

const client = new Client(url, encoding === "binary" ? { encoding } : {});
const messages = client.subscribe(subject, { last: Number(count) });
const timed = Number(count) - Number(warm);
let read = 0;
let began = process.cpuUsage();
for await (const _ of messages) {
  read++;
  if (read === Number(warm)) began = process.cpuUsage();
  if (read === Number(count)) break;
}
const { user, system } = process.cpuUsage(began);
console.log((user + system) / timed);
await client.close();
