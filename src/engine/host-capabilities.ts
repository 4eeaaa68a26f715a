import { type ContextAwareResource, isNamespacedPolicyId, namespaceOfPolicyId } from '../resources/index.ts';
import type { CallContext, CallLimits } from '../wasm/index.ts';
import type { Review } from './review/admission-review.ts';
import { checkAccessReview } from './capabilities/access-review.ts';
import { buildInventory } from './capabilities/inventory.ts';
import { logEntry, shorten } from './capabilities/tracing.ts';
import { EngineError } from './values/errors.ts';
import type { HostCaller, HostPort, InventoryMode, PolicyLog } from './capabilities/host-port.ts';
import { isJsonObject } from './values/json-text.ts';
import type { JsonValue } from './values/json-text.ts';
import { parseJson } from '../values/index.ts';

/** The only waPC binding of Kubewarden's host. */
const BINDING = 'kubewarden';
/**
 * Maximum number of host calls of one evaluation, because fuel does not count the host's work. Policies make one call
 * per object.
 */
export const MAX_HOST_CALLS = 1_000;
/** Maximum number of log lines of one evaluation; others are dropped, which is logged once. */
export const MAX_LOG_LINES = 100;
/** Maximum size of a payload in bytes: a certificate with its chain as a list of numbers stays far below. */
const MAX_PAYLOAD_BYTES = 4 * 1024 * 1024;

/** A policy (or member of a group) and its grants. */
export interface CapabilityHolder {
  /** For messages and logs: the policy's id, or `group/member`. */
  readonly id: string;
  readonly hostCapabilities: readonly string[];
  readonly contextAwareResources: readonly ContextAwareResource[];
}

/** The evaluation that a guest call belongs to. */
export interface CallEvaluation {
  /** Time left for it. Milliseconds. */
  readonly timeoutMs: number;
  /** Undefined when the guest evaluates none. */
  readonly review?: Pick<Review, 'userInfo'>;
}

/** A call of a guest to its host. */
interface HostCall {
  readonly binding: string;
  readonly namespace: string;
  readonly operation: string;
  readonly payload: Uint8Array;
}

/** Host calls of all policies of a thread: checks the grants of a policy, then calls the port. */
export class HostCapabilities {
  readonly #port: HostPort;
  readonly #log: PolicyLog;

  constructor(port: HostPort, log: PolicyLog) {
    this.#port = port;
    this.#log = log;
  }

  /** The context of one guest call for `holder`. */
  context(holder: CapabilityHolder, limits: CallLimits, { timeoutMs, review }: CallEvaluation): CallContext {
    const deadline = performance.now() + timeoutMs;
    const tenant = namespaceOfPolicyId(holder.id);
    const caller = (): HostCaller => ({
      leftMs: deadline - performance.now(),
      ...(tenant === undefined ? {} : { tenant }),
    });
    let calls = 0;
    let lines = 0;
    const log: PolicyLog = (entry) => {
      lines++;
      if (lines <= MAX_LOG_LINES) {
        this.#log(entry);
      } else if (lines === MAX_LOG_LINES + 1) {
        const message = 'the policy logs too much: the rest of this evaluation is dropped';
        this.#log({ policy: holder.id, level: 'warn', message, fields: { limit: MAX_LOG_LINES } });
      }
    };
    return {
      limits,
      log: (text) => log({ policy: holder.id, level: 'info', message: shorten(text), fields: {} }),
      hostCall: (binding, namespace, operation, payload) => {
        if (++calls > MAX_HOST_CALLS) {
          throw new EngineError(
            'capability-refused',
            `too many host calls: expected at most ${MAX_HOST_CALLS} in one evaluation`,
          );
        }
        const call = { binding, namespace, operation, payload };
        const granted = this.#granted(holder, call, review, log);
        return Buffer.from(
          granted === undefined ? '' : this.#port.request(granted.capability, granted.payload, caller()),
        );
      },
    };
  }

  /** The objects that a Rego policy declares, in the shape of its mode; undefined without declared kinds. */
  inventory(holder: CapabilityHolder, mode: InventoryMode): string | undefined {
    const { contextAwareResources } = holder;
    if (contextAwareResources.length === 0) {
      return undefined;
    }
    return (
      this.#port.inventory?.(mode, contextAwareResources) ?? buildInventory(this.#port, mode, contextAwareResources)
    );
  }

  /** The call if the policy may make it; undefined if it is answered already, without content. */
  #granted(
    holder: CapabilityHolder,
    { binding, namespace, operation, payload }: HostCall,
    review: Pick<Review, 'userInfo'> | undefined,
    log: PolicyLog,
  ): { readonly capability: string; readonly payload: string } | undefined {
    if (binding !== BINDING) {
      throw new EngineError(
        'capability-refused',
        `unknown binding: expected "${BINDING}", got ${JSON.stringify(shorten(binding))}`,
      );
    }
    const capability = `${namespace}/${operation}`;
    const { text, value } = parsePayload(capability, payload);
    if (namespace === 'tracing') {
      if (operation !== 'log') {
        throw new EngineError('capability-refused', `unknown host capability: ${capability}`);
      }
      log(logEntry(holder.id, value));
      return undefined;
    }
    if (!isGranted(capability, holder.hostCapabilities)) {
      throw new EngineError(
        'capability-refused',
        `the policy ${holder.id} may not use the host capability ${capability}: add "${capability}" to ${fieldOfGrants(holder)}`,
      );
    }
    if (namespace === 'kubernetes' && operation !== 'can_i') {
      checkResource(holder, operation, value);
    } else if (namespace === 'kubernetes' && isNamespacedPolicyId(holder.id)) {
      checkAccessReview(holder.id, value, review?.userInfo());
    }
    return { capability, payload: text };
  }
}

/** Where host capabilities are granted to a policy. */
function fieldOfGrants({ id }: CapabilityHolder): string {
  return isNamespacedPolicyId(id) ? 'spec.namespacedPoliciesCapabilities of its PolicyServer' : 'its hostCapabilities';
}

/** Whether a capability matches one of the patterns `*`, `ns/*`, `ns/v1/*`, or an exact path. */
export function isGranted(capability: string, patterns: readonly string[]): boolean {
  return patterns.some(
    (pattern) =>
      pattern === '*' ||
      pattern === capability ||
      (pattern.endsWith('/*') && capability.startsWith(pattern.slice(0, -1))),
  );
}

/** Reads need a grant of the kind, including the engine's own lookup of the plural name. */
function checkResource(holder: CapabilityHolder, operation: string, payload: JsonValue): void {
  const { api_version: apiVersion, kind } = isJsonObject(payload) ? payload : {};
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') {
    throw new EngineError('capability-failed', `kubernetes/${operation}: expected the texts api_version and kind`);
  }
  const isDeclared = holder.contextAwareResources.some(
    (resource) => resource.apiVersion === apiVersion && resource.kind === kind,
  );
  if (!isDeclared) {
    const entry = `{apiVersion: ${apiVersion}, kind: ${kind}}`;
    throw new EngineError(
      'capability-refused',
      `the policy ${holder.id} may not read Kubernetes ${apiVersion}/${kind} resources: add ${entry} to its contextAwareResources`,
    );
  }
}

function parsePayload(capability: string, payload: Uint8Array): { text: string; value: JsonValue } {
  if (payload.byteLength > MAX_PAYLOAD_BYTES) {
    throw new EngineError(
      'capability-failed',
      `${capability}: expected a payload of at most ${MAX_PAYLOAD_BYTES} bytes`,
    );
  }
  const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString();
  try {
    return { text, value: parseJson(text) as JsonValue };
  } catch (error) {
    throw new EngineError('capability-failed', `${capability}: expected a payload of JSON`, { cause: error });
  }
}
