// A client classifies items, and updates its position, as in protocol/vectors/recovery.json.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Position } from "../../src/model.js";
import { ResumePoint } from "../../src/session/resume_point.js";
import { PositionTracker } from "../../src/session/position_tracker.js";
import { JsonEncoding } from "../../src/codec/json.js";
import { vectors } from "../vectors.js";

for (const { name, resume_point: resumePoint, steps } of vectors("recovery").client) {
  test(`a client's position follows the table: ${name}`, () => {
    const tracker = new PositionTracker("/s", false, 10, resumePoint ? new ResumePoint(new Map([["/s", Position.parse(resumePoint)]])) : null);
    assert.ok(steps.length > 0);
    for (const step of steps) {
      const comes = "message" in step.comes ? { time: 0, content: null, ...step.comes } : step.comes;
      const [push] = new JsonEncoding().decode(JSON.stringify(comes));
      if (step.is === "order") {
        assert.equal(push.type, "epochs");
        tracker.order(push.subject, push.order);
      } else if (step.is === "repeated gap") {
        assert.equal(tracker.refine(push), null);
      } else if (step.is === "gap") {
        assert.equal(push.type, "gap");
        tracker.place(push);
      } else {
        assert.equal(tracker.judge(push), step.is);
      }
      assert.equal(String(tracker.position("/s")), step.stands);
    }
  });
}
