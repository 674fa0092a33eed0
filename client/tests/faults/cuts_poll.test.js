// Clients that are cut at random, carried by long poll and POST.

import { cutAtRandom } from "./cutting.js";

const MOST = 100; // three hundred did not end in six minutes (SEED=1092409392): why is not known yet

if (process.env.LONG) cutAtRandom("poll", MOST); // a part of make test-all
