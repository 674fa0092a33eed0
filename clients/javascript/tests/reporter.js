// A dot for each test that passes; the name, the location and the error of each that fails, at once: `--test-force-exit` may
// end the process before the end of a report is written.
import { writeSync } from "node:fs";
import { inspect } from "node:util";

const WIDTH = 80;

/** @param {AsyncIterable<{type: string, data: any}>} events */
export default async function* report(events) {
  let count = 0;
  for await (const { type, data } of events) {
    const error = data?.details?.error;
    if (type === "test:pass") yield ".";
    else if (type === "test:fail" && error?.failureType !== "subtestsFailed")
      writeSync(2, `\nFAILED ${data.name} (${data.file}:${data.line})\n${inspect(error?.cause ?? error)}\n`);
    else continue;
    if (++count % WIDTH === 0) yield "\n";
  }
}
