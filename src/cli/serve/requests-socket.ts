import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where a policy server offers recorded requests by default: in its container, a folder of the pod. */
export const REQUESTS_SOCKET: string = join(tmpdir(), 'portcullis-requests', 'socket');
