import type { CallEstimate, CallSizes } from '../library.ts';
import { exactly, scaleRange } from '../range.ts';
import type { CelType } from '../type.ts';
import { isSameType } from './unification.ts';

/** Cost of going through a text, for each of its characters (cel-go, `StringTraversalCostFactor`). */
const TRAVERSAL = 0.1;

/** Longest name of a format (apiserver, `MaxFormatSize`). */
const MAX_FORMAT_SIZE = 64;

/** Types of Kubernetes' libraries whose values are compared at a cost of 1. */
const CHEAP_TO_COMPARE: ReadonlySet<string> = new Set([
  'net.IP',
  'net.CIDR',
  'kubernetes.Quantity',
  'kubernetes.Semver',
  'kubernetes.authorization.Authorizer',
  'kubernetes.authorization.PathCheck',
  'kubernetes.authorization.GroupCheck',
  'kubernetes.authorization.ResourceCheck',
  'kubernetes.authorization.Decision',
]);

/**
 * What `==` of two values of one type of Kubernetes' libraries costs (apiserver, `EstimateCallCost`); undefined for other
 * types.
 */
export function estimateKubernetesEquality({ types, args }: CallSizes): CallEstimate | undefined {
  const [left, right] = types;
  if (left === undefined || right === undefined || !isNamed(left) || !isSameType(left, right)) {
    return undefined;
  }
  if (CHEAP_TO_COMPARE.has(left.name)) {
    return { cost: exactly(1) };
  }
  switch (left.name) {
    case 'kubernetes.NamedFormat':
      return { cost: scaleRange({ min: 1, max: MAX_FORMAT_SIZE }, TRAVERSAL) };
    case 'kubernetes.URL': {
      // A size that is not known counts as 1 there.
      const max = args[1]?.max ?? Infinity;
      return { cost: scaleRange({ min: 1, max: max === Infinity ? 1 : max }, TRAVERSAL) };
    }
    default:
      return undefined;
  }
}

function isNamed(type: CelType): type is Extract<CelType, { kind: 'opaque' | 'struct' }> {
  return type.kind === 'opaque' || type.kind === 'struct';
}
