// Clients that are cut at random, carried by long poll and POST.

import { cutAtRandom } from "./cutting.js";

const MOST = 300; // each poll is a round trip of its own: a thousand cuts take half an hour

if (process.env.LONG) cutAtRandom("poll", MOST); // a part of make test-all
