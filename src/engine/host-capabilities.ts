import type { CallContext, CallLimits } from '../wasm/index.ts';
import { buildInventory } from './capabilities/inventory.ts';
import { logEntry, shorten } from './capabilities/tracing.ts';
import { EngineError } from './errors.ts';
import type { HostPort, InventoryMode, PolicyLog } from './host-port.ts';
import { isJsonObject } from './json-text.ts';
import type { JsonValue } from './json-text.ts';
import type { ContextAwareResource } from './policy-definition.ts';
import { parseJson } from '../values/index.ts';

/** The only waPC binding of Kubewarden's host. */
const BINDING = 'kubewarden';
/** Host calls of one evaluation: fuel does not count the host's work. Policies make one per object they look at. */
export const MAX_HOST_CALLS = 1_000;
/** Log lines of one evaluation; the rest is dropped, with a line that says so. */
export const MAX_LOG_LINES = 100;
/** Largest payload of a host call, in bytes: a certificate with its chain as a list of numbers stays far below. */
export const MAX_PAYLOAD_BYTES = 4 * 1024 * 1024;

/** A policy (or member of a group) and what it was granted. */
export interface CapabilityHolder {
  /** For messages and logs: the policy's id, or `group/member`. */
  readonly id: string;
  readonly hostCapabilities: readonly string[];
  readonly contextAwareResources: readonly ContextAwareResource[];
}

/** The capabilities of every policy of a thread: checks what a policy was granted, then asks the port. */
export class HostCapabilities {
  readonly #port: HostPort;
  readonly #log: PolicyLog;

  constructor(port: HostPort, log: PolicyLog) {
    this.#port = port;
    this.#log = log;
  }

  /** What a guest may reach during one call on behalf of `holder`. */
  context(holder: CapabilityHolder, limits: CallLimits): CallContext {
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
        return Buffer.from(this.#call(holder, binding, namespace, operation, payload, log));
      },
    };
  }

  /** The objects that a Rego policy declared, in its mode's shape; undefined when it declared none. */
  inventory(holder: CapabilityHolder, mode: InventoryMode): string | undefined {
    const { contextAwareResources } = holder;
    if (contextAwareResources.length === 0) {
      return undefined;
    }
    return (
      this.#port.inventory?.(mode, contextAwareResources) ?? buildInventory(this.#port, mode, contextAwareResources)
    );
  }

  #call(
    holder: CapabilityHolder,
    binding: string,
    namespace: string,
    operation: string,
    payload: Uint8Array,
    log: PolicyLog,
  ): string {
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
      return '';
    }
    if (!isGranted(capability, holder.hostCapabilities)) {
      throw new EngineError(
        'capability-refused',
        `the policy ${holder.id} may not use the host capability ${capability}: add "${capability}" to its hostCapabilities`,
      );
    }
    if (namespace === 'kubernetes' && operation !== 'can_i') {
      checkResource(holder, operation, value);
    }
    return this.#port.request(capability, text);
  }
}

/** Whether a capability's path matches one of the patterns `*`, `ns/*`, `ns/v1/*` or is one of the exact paths. */
export function isGranted(capability: string, patterns: readonly string[]): boolean {
  return patterns.some(
    (pattern) =>
      pattern === '*' ||
      pattern === capability ||
      (pattern.endsWith('/*') && capability.startsWith(pattern.slice(0, -1))),
  );
}

/** Reads through the plural name are the engine's own and get no further than a grant of the kind, either. */
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
