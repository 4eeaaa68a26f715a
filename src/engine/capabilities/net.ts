import { lookup } from 'node:dns/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';

/** Longest host name of DNS (RFC 1035), with a trailing dot. */
const MAX_HOST_LENGTH = 254;

/** Answers `net/v1/dns_lookup_host`: all addresses of a host. `payload` is its name. */
export async function lookUpHost(payload: JsonValue, timeoutMs: number): Promise<JsonObject> {
  // The SDKs send the name itself; a few send an object.
  const host = isJsonObject(payload) ? payload.host : payload;
  if (typeof host !== 'string' || host === '' || host.length > MAX_HOST_LENGTH) {
    throw new Error('the payload: expected the name of a host');
  }
  // A lookup cannot be cancelled: a late answer is ignored.
  const timer = new AbortController();
  const tooLate = delay(timeoutMs, undefined, { signal: timer.signal, ref: false }).then(() => {
    throw new Error(`cannot look up ${host}: no answer within ${timeoutMs} ms`);
  });
  const found = lookup(host, { all: true, verbatim: true }).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`cannot look up ${host}: ${error.code ?? error.message}`, { cause: error });
  });
  try {
    const addresses = await Promise.race([found, tooLate]);
    return { ips: addresses.map(({ address }) => address) };
  } finally {
    timer.abort();
    found.catch(() => undefined);
    tooLate.catch(() => undefined);
  }
}
