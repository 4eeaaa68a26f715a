// The client of POST /prevalidate.
import { FETCH_TIMEOUT_MS, isDigest, parseReference } from '../modules/index.ts';
import {
  isGroupSpec,
  isJsonObject,
  MAX_PARAMETERS_FINGERPRINT,
  MAX_WARNING_LENGTH,
  MAX_WARNINGS,
  own,
} from '../resources/index.ts';
import { MAX_REPORT_TEXT } from './replica-protocol.ts';
import type { PinnedModule, PrevalidationRequest, PrevalidationResult } from './replica-protocol.ts';
import type { ControlAddress, ControlClient } from './control-client.ts';
import { readBoolean, readList, readName, readOptionalText, readReason, unexpected } from './replica-message.ts';
import { parseJson } from '../values/index.ts';

/**
 * Time limit of a pre-validation: the download of a module, compiling and checking. Longer than the replica's own
 * limit, so that its error arrives. Milliseconds.
 */
export const PREVALIDATION_TIMEOUT_MS = FETCH_TIMEOUT_MS + 70_000;
/** Longest response: some hundred members of a group with references of 2 KiB. Bytes. */
const MAX_RESPONSE_BYTES = 1024 ** 2;
/** Longest member name and module reference: the length of a URL. Characters. */
const MAX_MODULE_TEXT = 8192;
/** The pattern of digests in the CRD of PolicyRevision. */
const DIGEST = /^(sha256:[0-9a-f]{64}|builtin:[a-z-]+@.{1,64})$/;

/** Status codes that reject the request itself: a retry gets the same answer. */
const REJECTIONS: ReadonlySet<number> = new Set([400, 413, 422]);

/**
 * Has one replica pre-validate a policy. Resolves with `busy` when the replica is at its limit.
 * @throws Error when the request fails or the response is invalid
 */
export async function prevalidateOn(
  client: ControlClient,
  address: ControlAddress,
  request: PrevalidationRequest,
  signal: AbortSignal,
): Promise<PrevalidationResult | 'busy'> {
  const { status, body } = await client.post(address, '/prevalidate', request, {
    signal,
    maxBytes: MAX_RESPONSE_BYTES,
  });
  if (status === 503) {
    return 'busy';
  }
  const text = body.toString('utf8');
  if (REJECTIONS.has(status)) {
    // Both sides are ours, so their versions differ for the moment. The status says so meanwhile.
    const why = text.slice(0, MAX_REPORT_TEXT).toWellFormed();
    return {
      ok: false,
      reason: 'InvalidDefinition',
      message: `the policy server rejects the policy (HTTP ${status}): ${why}`,
      isTransient: true,
    };
  }
  if (status !== 200) {
    throw new TypeError(`expected status 200 of POST /prevalidate, got ${status}`);
  }
  const result = prevalidationResult(text);
  if (result.ok) {
    checkModules(request, result.modules);
  }
  return result;
}

/**
 * The modules of a result become those of the revision, for all replicas. So they are those of the policy, and have the digests that
 * its references name.
 * @throws TypeError when they are not
 */
export function checkModules({ metadata, spec }: PrevalidationRequest, modules: readonly PinnedModule[]): void {
  const used = new Map<string, string>(
    isGroupSpec(spec)
      ? Object.entries(spec.policies).map(([name, { module }]) => [name, module])
      : [[metadata.name, spec.module]],
  );
  if (modules.length !== used.size) {
    throw unexpected(`modules: ${used.size}, as the policy has`, modules.length);
  }
  for (const pinned of modules) {
    const module = used.get(pinned.name);
    if (module !== pinned.module) {
      throw unexpected(`a module of the policy by the name ${JSON.stringify(pinned.name)}`, pinned.module);
    }
    used.delete(pinned.name);
    const { digest, manifest } = digestsIn(module);
    if ((digest ?? pinned.digest) !== pinned.digest || (manifest ?? pinned.manifest) !== pinned.manifest) {
      throw unexpected(`the digest ${digest ?? manifest} of the reference`, manifest ? pinned.manifest : pinned.digest);
    }
  }
}

/** The digest that a reference names: of the module, or of the manifest in a registry. */
function digestsIn(reference: string): Partial<Pick<PinnedModule, 'digest' | 'manifest'>> {
  try {
    const parsed = parseReference(reference, { baseDir: '/' });
    return parsed.kind === 'registry'
      ? { ...(parsed.manifest && { manifest: parsed.manifest }) }
      : { ...(parsed.digest && { digest: parsed.digest }) };
  } catch {
    // A builtin module, or an invalid reference, which no replica loads.
    return {};
  }
}

/** Parses a response. @throws TypeError when it is invalid */
export function prevalidationResult(text: string): PrevalidationResult {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw unexpected('JSON', text);
  }
  if (!isJsonObject(value)) {
    throw unexpected('a result of pre-validation', value);
  }
  if (readBoolean(value, 'ok')) {
    const warnings = own(value, 'warnings') === undefined ? [] : readList(value, 'warnings').map(warning);
    const modules = readList(value, 'modules').map(pinnedModule);
    return { ok: true, modules, ...(warnings.length === 0 ? {} : { warnings: warnings.slice(0, MAX_WARNINGS) }) };
  }
  return {
    ok: false,
    reason: readReason(readName(value, 'reason')),
    message: readOptionalText(value, 'message', MAX_REPORT_TEXT) ?? '',
    isTransient: readBoolean(value, 'isTransient'),
    ...(own(value, 'parameters') === undefined
      ? {}
      : { parameters: readName(value, 'parameters', MAX_PARAMETERS_FINGERPRINT) }),
  };
}

function warning(value: unknown): string {
  if (typeof value !== 'string') {
    throw unexpected('warnings: texts', value);
  }
  return value.slice(0, MAX_WARNING_LENGTH).toWellFormed();
}

function pinnedModule(value: unknown): PinnedModule {
  if (!isJsonObject(value)) {
    throw unexpected('a module', value);
  }
  const digest = own(value, 'digest');
  if (typeof digest !== 'string' || !DIGEST.test(digest)) {
    throw unexpected('digest: sha256:… or builtin:…@…', digest);
  }
  const [manifest, verifiedBy] = (['manifest', 'verifiedBy'] as const).map((field) => {
    const text = own(value, field);
    if (text !== undefined && !isDigest(text)) {
      throw unexpected(`${field}: sha256:…`, text);
    }
    return text;
  });
  return {
    name: readName(value, 'name', MAX_MODULE_TEXT),
    module: readName(value, 'module', MAX_MODULE_TEXT),
    digest,
    ...(manifest === undefined ? {} : { manifest }),
    ...(verifiedBy === undefined ? {} : { verifiedBy }),
  };
}
