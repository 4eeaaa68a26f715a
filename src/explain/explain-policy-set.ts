// Why a PolicySet is not Compliant.
import type { PolicyGraph } from '../governance/index.ts';
import { type ObjectKey, textsOf, valueAt } from '../resources/index.ts';
import type { Asked, Explanation } from './explanation.ts';

/** Policies of a set that are explained: what a user reads. */
const MAX_MEMBERS = 50;

/** What keeps a set from being Compliant: each of its Policies that is not. Undefined if there is no such set. */
export function explainPolicySet(
  key: Required<ObjectKey>,
  policies: PolicyGraph,
  { program }: Asked,
): Explanation | undefined {
  const set = policies.sets.get(`${key.namespace}/${key.name}`);
  if (set === undefined) {
    return undefined;
  }
  const names = [...new Set(textsOf(valueAt(set, 'spec', 'policies')))].toSorted();
  const members = names.map((name) => memberOf(`${key.namespace}/${name}`, name, key.namespace, policies, program));
  const notable = members.filter(({ because }) => because !== undefined);
  const more = notable.length - MAX_MEMBERS;
  const compliant = valueAt(set, 'status', 'compliant');
  return {
    policySet: `${key.namespace}/${key.name}`,
    ...(typeof compliant === 'string' ? { compliant } : {}),
    because: [
      ...notable.slice(0, MAX_MEMBERS).map(({ because = '' }) => because),
      ...(more > 0 ? [`${more} more policies are not Compliant.`] : []),
      ...(notable.length === 0 ? [`All ${members.length} policies are Compliant.`] : []),
    ],
    toDo: notable.slice(0, MAX_MEMBERS).flatMap(({ toDo }) => (toDo === undefined ? [] : [toDo])),
  };
}

interface Member {
  /** Absent if the Policy is Compliant. */
  readonly because?: string;
  readonly toDo?: string;
}

function memberOf(
  id: string,
  name: string,
  namespace: string,
  { roots, isPartial }: PolicyGraph,
  program: string,
): Member {
  const root = roots.get(id);
  if (root === undefined) {
    return {
      because: `policy ${id} does not exist${isPartial ? ', or you may not read it' : ''}.`,
      toDo: `Create policy ${id}, or remove it from the set.`,
    };
  }
  if (valueAt(root, 'spec', 'disabled') === true) {
    return { because: `policy ${id} is disabled, and does not count.` };
  }
  const { compliant, message = '' } = root.status ?? {};
  if (compliant === 'Compliant') {
    return {};
  }
  const state = compliant === undefined ? 'has no compliance yet' : `is ${compliant}`;
  return {
    because: `policy ${id} ${state}${message === '' ? '.' : `: ${message}`}`,
    toDo: `See why policy ${id} ${state}: ${program} explain policy/${name} -n ${namespace}`,
  };
}
