import type { CallEstimate, CallSizes } from '../model/library.ts';
import { exactly, scaleRange } from '../model/range.ts';
import type { CelType } from '../model/type.ts';
import { isSameType } from './unification.ts';

/** Cost per character of traversing a string (cel-go, `StringTraversalCostFactor`). */
const TRAVERSAL = 0.1;

/** Maximum length of a format name (apiserver, `MaxFormatSize`). */
const MAX_FORMAT_SIZE = 64;

/** Types of the Kubernetes libraries with a comparison cost of 1. */
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
 * Estimated cost of `==` for two values of one type of the Kubernetes libraries (apiserver, `EstimateCallCost`);
 * undefined for other types.
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
      // API servers use 1 for an unknown size.
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
