// All disasters: which processes start again in which order, which modules are left, and what is changed while nothing runs.
import type { JsonObject } from '../../src/resources/index.ts';
import type { Effect } from './status-claims.ts';

const ORDERS = ['controllers first', 'servers first', 'interleaved', 'one controller', 'one server'] as const;
/** Where modules are left: in the caches of policy servers, of the first one only, on controllers, or nowhere. */
const LEFT = ['caches', 'one cache', 'copies', 'nothing'] as const;
/** `--degraded-policies` of the controllers that start. */
const DEGRADED = ['last-good', 'ignore'] as const;

export interface Disaster {
  readonly order: (typeof ORDERS)[number];
  readonly left: (typeof LEFT)[number];
  readonly degraded: (typeof DEGRADED)[number];
}

/** What happens to a policy: a change of its spec, its deletion, or an annotation, which break-glass sets. */
export type Change = { readonly spec: JsonObject } | 'delete' | 'disarm' | 'rearm';

export interface DisasterPolicy {
  readonly name: string;
  /** The kind that it judges. Webhooks without a policy server stop whatever one of their policies is for, so each has its own. */
  readonly kind: string;
  readonly apiVersion?: string;
  /** The least that is valid of the kind. */
  readonly object?: JsonObject;
  readonly spec?: JsonObject;
  /** While nothing runs. */
  readonly whileDown?: readonly Change[];
  /** After the start, while the source is still down. */
  readonly later?: readonly Change[];
}

const IGNORE = { spec: { failurePolicy: 'Ignore' } } as const;
const FAIL = { spec: { failurePolicy: 'Fail' } } as const;
const MONITOR = { spec: { mode: 'monitor' } } as const;
const PROTECT = { spec: { mode: 'protect' } } as const;
const MODULE_OF_NOBODY = { spec: { module: 'http://127.0.0.1:9/absent.wasm' } } as const;
const RBAC = 'rbac.authorization.k8s.io/v1';
const NETWORKING = 'networking.k8s.io/v1';

export const POLICIES_OF_DISASTERS: readonly DisasterPolicy[] = [
  { name: 'unchanged', kind: 'ConfigMap' },
  { name: 'loosened', kind: 'Secret', whileDown: [IGNORE], later: [FAIL] },
  { name: 'stricter', kind: 'ServiceAccount', spec: IGNORE.spec, whileDown: [FAIL], later: [IGNORE] },
  { name: 'monitored', kind: 'Endpoints', whileDown: [MONITOR], later: [PROTECT] },
  {
    name: 'protecting',
    kind: 'LimitRange',
    object: { spec: { limits: [] } },
    spec: MONITOR.spec,
    whileDown: [PROTECT],
  },
  {
    name: 'timed',
    kind: 'ResourceQuota',
    object: { spec: {} },
    whileDown: [{ spec: { timeoutSeconds: 7 } }],
    later: [{ spec: { timeoutSeconds: 5 } }],
  },
  {
    name: 'replaced',
    kind: 'Role',
    apiVersion: RBAC,
    object: { rules: [] },
    whileDown: [MODULE_OF_NOBODY],
    later: [IGNORE],
  },
  {
    name: 'deleted',
    kind: 'NetworkPolicy',
    apiVersion: NETWORKING,
    object: { spec: { podSelector: {} } },
    whileDown: ['delete'],
  },
  {
    name: 'disarmed',
    kind: 'PodDisruptionBudget',
    apiVersion: 'policy/v1',
    object: { spec: { minAvailable: 1, selector: {} } },
    whileDown: ['disarm'],
    later: ['rearm'],
  },
  {
    name: 'rearmed',
    kind: 'Service',
    object: { spec: { ports: [{ port: 80 }] } },
    whileDown: ['disarm', 'rearm'],
    later: ['disarm'],
  },
];

export const DISASTERS: readonly Disaster[] = ORDERS.flatMap((order) =>
  LEFT.flatMap((left) => DEGRADED.map((degraded) => ({ order, left, degraded }))),
);

/** Some that take seconds: with and without modules that are left, and with both settings. */
export const REPRESENTATIVE_DISASTERS: readonly Disaster[] = [
  { order: 'controllers first', left: 'nothing', degraded: 'last-good' },
  { order: 'servers first', left: 'copies', degraded: 'last-good' },
  { order: 'interleaved', left: 'nothing', degraded: 'ignore' },
];

/** What requests of a policy get once processes have started, by the changes so far. */
export function expectedEffect(
  { left, degraded }: Disaster,
  { spec = {} }: DisasterPolicy,
  changes: readonly Change[],
): Effect {
  if (changes.includes('delete') || changes.findLast((one) => one === 'disarm' || one === 'rearm') === 'disarm') {
    return 'admitted';
  }
  const isWhole = changes.every((one) => one !== MODULE_OF_NOBODY);
  // A revision whose module cannot be loaded is used nowhere, its failurePolicy neither.
  const applied = isWhole ? changes.filter((one) => typeof one === 'object').map((one) => one.spec) : [];
  const now: JsonObject = Object.assign({}, spec, ...applied);
  if (now['mode'] === 'monitor') {
    return 'admitted';
  }
  if (left !== 'nothing') {
    return 'judged';
  }
  return degraded === 'ignore' || now['failurePolicy'] === 'Ignore' ? 'admitted' : 'rejected';
}
