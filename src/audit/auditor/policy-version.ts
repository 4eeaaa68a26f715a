// A policy as it was loaded, and what its verdicts depend on.
import { isDeepStrictEqual } from 'node:util';
import { moduleUses } from '../../engine/definition/index.ts';
import type { ParametersResource } from '../../engine/index.ts';
import { objectNeeds } from '../../evaluation/object-feeds/index.ts';
import type { HostedPolicy } from '../../evaluation/index.ts';
import { isBuiltin } from '../../modules/index.ts';
import type { ContextAwareResource, PolicyMatch } from '../../resources/index.ts';
import type { AuditFinding } from '../finding.ts';
import type { KindPolicy } from '../plan-audit.ts';
import { VerdictKeys } from '../verdict-key.ts';

/** The policy object that a version is of. */
export interface PolicyOrigin extends Pick<AuditFinding, 'severity' | 'category'> {
  readonly uid: string;
  readonly generation: number;
}

/** One version of a policy. Another one is another value. */
export interface PolicyVersion extends KindPolicy {
  readonly origin: PolicyOrigin;
  readonly hosted: HostedPolicy;
  /** Of its modules. */
  readonly digests: Readonly<Record<string, string>>;
  readonly keys: VerdictKeys;
  readonly readsNamespaces: boolean;
  /** The objects with its parameters; of the namespace of the judged object where they name none. */
  readonly parameters: readonly ParametersResource[];
  /** Kinds that it looks up while it runs. */
  readonly looksUp: readonly ContextAwareResource[];
  /** Whether its verdicts may depend on more than their keys: they expire. */
  readonly expires: boolean;
}

/** A policy that a host serves now. The version before stays the same value where nothing but the policy's object changed. */
export function policyVersion(
  policy: KindPolicy,
  origin: PolicyOrigin,
  hosted: HostedPolicy & { readonly match: PolicyMatch },
  digests: Readonly<Record<string, string>>,
  before: PolicyVersion | undefined,
): PolicyVersion {
  if (
    before !== undefined &&
    isDeepStrictEqual([before.origin, before.hosted, before.digests], [origin, hosted, digests])
  ) {
    return before;
  }
  const { definition, match } = hosted;
  const uses = moduleUses(definition);
  const { readsNamespaces } = objectNeeds(uses, [match]);
  const looksUp = uses.flatMap(({ contextAwareResources }) => contextAwareResources);
  return {
    ...policy,
    origin,
    hosted,
    digests,
    keys: new VerdictKeys({ definition, match, digests }),
    readsNamespaces,
    parameters: uses.flatMap(({ parameters }) =>
      parameters !== undefined && 'resource' in parameters.from ? [parameters.from.resource] : [],
    ),
    looksUp,
    // Nobody knows whether other modules call the host.
    expires:
      looksUp.length > 0 ||
      uses.some(({ module, hostCapabilities }) => !isBuiltin(module) && hostCapabilities.length > 0),
  };
}
