// Clients that are cut at random, carried by events and POST.

import { cutAtRandom } from "./cutting.js";

if (process.env.LONG) cutAtRandom("sse"); // a part of make test-all
