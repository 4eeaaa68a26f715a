// POST /prevalidate of a replica: what is asked, and what its answer means.
import { FETCH_TIMEOUT_MS } from '../modules/index.ts';
import { isJsonObject, own } from '../resources/index.ts';
import { MAX_REPORT_TEXT } from './replica-protocol.ts';
import type { PinnedModule, PrevalidationRequest, PrevalidationResult } from './replica-protocol.ts';
import type { ControlAddress, ControlClient } from './control-client.ts';
import { flag, list, name, optionalText, reasonOf, unexpected } from './replica-message.ts';
import { parseJson } from '../values/index.ts';

/**
 * How long a replica may take: to fetch a module for as long as that may last, then to compile it and to try it. A little
 * longer than replicas give it themselves, so that they are the ones who say so. Milliseconds.
 */
export const PREVALIDATION_TIMEOUT_MS = FETCH_TIMEOUT_MS + 70_000;
/** Longest answer: some hundred members of a group with references of 2 KiB. Bytes. */
export const MAX_ANSWER_BYTES = 1024 ** 2;
/** Longest name of a member of a group, and longest reference of a module: what fits a URL. Characters. */
const MAX_MODULE_TEXT = 8192;
/** As the CRD of PolicyRevisions has it. */
const DIGEST = /^(sha256:[0-9a-f]{64}|builtin:[a-z-]+@.{1,64})$/;

/** The statuses by which a replica says that it will not have the request, however often it is made. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 422]);

/**
 * Has one replica try a policy. Resolves with `busy` when it has no time.
 * @throws Error when it does not answer, or not as it should
 */
export async function prevalidateOn(
  client: ControlClient,
  address: ControlAddress,
  request: PrevalidationRequest,
  signal: AbortSignal,
): Promise<PrevalidationResult | 'busy'> {
  const { status, body } = await client.post(address, '/prevalidate', request, { signal, maxBytes: MAX_ANSWER_BYTES });
  if (status === 503) {
    return 'busy';
  }
  const text = body.toString('utf8');
  if (REFUSALS.has(status)) {
    // Both sides are ours: versions that differ, which passes. The policy's user is told rather than left waiting.
    const why = text.slice(0, MAX_REPORT_TEXT).toWellFormed();
    return {
      ok: false,
      reason: 'InvalidDefinition',
      message: `the policy server does not take the policy (HTTP ${status}): ${why}`,
      isTransient: true,
    };
  }
  if (status !== 200) {
    throw new TypeError(`expected POST /prevalidate to be answered with 200, got ${status}`);
  }
  return prevalidationResult(text);
}

/** The result of an answer. @throws TypeError when it is none */
export function prevalidationResult(text: string): PrevalidationResult {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw unexpected('an answer of JSON', text);
  }
  if (!isJsonObject(value)) {
    throw unexpected('the result of a prevalidation', value);
  }
  if (flag(value, 'ok')) {
    return { ok: true, modules: list(value, 'modules').map(pinnedModule) };
  }
  return {
    ok: false,
    reason: reasonOf(name(value, 'reason')),
    message: optionalText(value, 'message', MAX_REPORT_TEXT) ?? '',
    isTransient: flag(value, 'isTransient'),
  };
}

function pinnedModule(value: unknown): PinnedModule {
  if (!isJsonObject(value)) {
    throw unexpected('a module', value);
  }
  const digest = own(value, 'digest');
  if (typeof digest !== 'string' || !DIGEST.test(digest)) {
    throw unexpected('digest: sha256:… or builtin:…@…', digest);
  }
  return { name: name(value, 'name', MAX_MODULE_TEXT), module: name(value, 'module', MAX_MODULE_TEXT), digest };
}
