// A client makes of what comes what protocol/vectors/recovery.json says, and stands where it says.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Position } from "../../src/model.js";
import { Stand } from "../../src/session/stand.js";
import { Standing } from "../../src/session/standing.js";
import { JsonWire } from "../../src/wire/json.js";
import { vectors } from "../vectors.js";

for (const { name, stand, steps } of vectors("recovery").client) {
  test(`a client stands where the table says: ${name}`, () => {
    const standing = new Standing("/s", false, 10, stand ? new Stand(new Map([["/s", Position.parse(stand)]])) : null);
    assert.ok(steps.length > 0);
    for (const step of steps) {
      const comes = "message" in step.comes ? { time: 0, content: null, ...step.comes } : step.comes;
      const [told] = new JsonWire().decode(JSON.stringify(comes));
      if (step.is === "gap") {
        assert.equal(told.type, "gap");
        standing.place(told);
      } else {
        assert.equal(standing.judge(told), step.is);
      }
      assert.equal(String(standing.position("/s")), step.stands);
    }
  });
}
