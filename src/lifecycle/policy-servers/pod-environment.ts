// Environment variables of a policy server's container.
import type { JsonObject, PolicyServerObject } from '../../resources/index.ts';

type Variables = NonNullable<PolicyServerObject['spec']['env']>;

/** Log formats that the process supports. */
export const LOG_FORMATS: readonly string[] = ['text', 'json'];
export const LOG_FORMAT = 'KUBEWARDEN_LOG_FMT';

/** Fields of the pod (downward API), by variable. */
const POD_FIELDS: Readonly<Record<string, string>> = {
  POD_NAME: 'metadata.name',
  POD_UID: 'metadata.uid',
  POD_NAMESPACE: 'metadata.namespace',
  POD_IP: 'status.podIP',
  NODE_NAME: 'spec.nodeName',
};

/** Variables that the controller sets by flags, or that conflict with those flags: the process would not start. */
const RESERVED: ReadonlySet<string> = new Set([
  ...Object.keys(POD_FIELDS),
  'KUBEWARDEN_BIND_ADDRESS',
  'KUBEWARDEN_CERT_FILE',
  'KUBEWARDEN_KEY_FILE',
  'KUBEWARDEN_CLIENT_CA_FILE',
  'KUBEWARDEN_POLICIES',
  'KUBEWARDEN_POLICIES_DOWNLOAD_DIR',
  'KUBEWARDEN_PORT',
  'KUBEWARDEN_READINESS_PROBE_PORT',
  'KUBEWARDEN_SIGSTORE_TRUST_CONFIG_PATH',
  'KUBEWARDEN_SOURCES_PATH',
  'KUBEWARDEN_VERIFICATION_CONFIG_PATH',
]);

/** Reserved variables in the spec. */
export function reservedVariables(env: Variables): readonly string[] {
  return [...new Set(env.map(({ name }) => name).filter((name) => RESERVED.has(name)))];
}

/**
 * `core/v1` EnvVar of the container: those of the spec and those of the controller, without duplicates, as API servers
 * require.
 */
export function podEnvironment(env: Variables): readonly JsonObject[] {
  const own = new Map<string, JsonObject>();
  for (const variable of env) {
    if (!RESERVED.has(variable.name)) {
      // The last one wins, as in a process.
      own.set(variable.name, variable);
    }
  }
  const format = own.get(LOG_FORMAT);
  if (format === undefined || (typeof format['value'] === 'string' && !LOG_FORMATS.includes(format['value']))) {
    own.set(LOG_FORMAT, { name: LOG_FORMAT, value: 'json' });
  }
  const ofPod = Object.entries(POD_FIELDS).map(([name, fieldPath]) => ({
    name,
    valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } },
  }));
  return [...ofPod, ...own.values()];
}
