// Clients that are cut at random, carried by a WebSocket where there is one.

import { cutAtRandom } from "./cutting.js";

cutAtRandom("auto");
