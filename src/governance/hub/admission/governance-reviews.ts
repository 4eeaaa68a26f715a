// The rules for objects of governance kinds that are applied. What upstream refuses is an error; all else is a warning.
import {
  CONFIGURATION_POLICIES,
  type JsonObject,
  type KubernetesObject,
  type OwnKind,
  own,
  POLICIES,
  type Policy,
  POLICY_SETS,
  textOf,
} from '../../../resources/index.ts';
import { type GovernedNamespaces, isGoverned } from '../../settings/governance-settings.ts';
import { isCopy } from '../../targets/policy-copy.ts';
import {
  type DependencyWarningsOptions,
  entryWarnings,
  graphWarnings,
  setCycleWarnings,
} from './dependency-warnings.ts';
import { nearestPolicy } from './nearest-policy.ts';
import {
  changedPolicyWarnings,
  listIn,
  newPolicyErrors,
  policySetErrors,
  templateNameWarnings,
} from './policy-rules.ts';
import { configurationTemplateWarnings, policyTemplateWarnings } from './template-warnings.ts';
import type { GovernanceWarning, WriteFindings } from './write-findings.ts';
import { objectIn } from '../../../values/index.ts';

/** Maximum number of members of a PolicySet that are checked. */
const MAX_MEMBERS = 1000;
/** Maximum number of missing members that are reported. */
const MAX_MISSING_MEMBERS = 5;

export interface GovernanceReviewsOptions extends DependencyWarningsOptions {
  readonly governed: GovernedNamespaces;
  /** Whether nothing is checked, because a controller of Open Cluster Management runs. */
  readonly isSilent: () => boolean;
}

const NOTHING: WriteFindings = { errors: [], warnings: [] };

/** Reviews writes of governance kinds, in every replica of the controller. */
export class GovernanceReviews {
  /** The name of the webhook. */
  readonly name = 'governance';
  readonly kinds: readonly OwnKind[] = [POLICIES, POLICY_SETS, CONFIGURATION_POLICIES];
  readonly #options: GovernanceReviewsOptions;

  constructor(options: GovernanceReviewsOptions) {
    this.#options = options;
  }

  /** @param isNew whether the object is created */
  review(kind: OwnKind, object: JsonObject, isNew: boolean): WriteFindings {
    if (this.#options.isSilent()) {
      return NOTHING;
    }
    switch (kind.kind) {
      case POLICIES.kind:
        return this.#reviewPolicy(object, isNew);
      case POLICY_SETS.kind:
        return { errors: policySetErrors(object), warnings: this.#setWarnings(object) };
      default:
        return { errors: [], warnings: configurationTemplateWarnings(object) };
    }
  }

  #reviewPolicy(object: JsonObject, isNew: boolean): WriteFindings {
    const policy = object as unknown as Policy;
    if (isCopy(policy) && this.#options.targets.hasCopies(policy.metadata.namespace ?? '')) {
      return NOTHING;
    }
    return {
      errors: isNew ? newPolicyErrors(object) : [],
      warnings: [
        ...(isNew ? [] : changedPolicyWarnings(object)),
        ...this.#namespaceWarnings(policy),
        ...templateNameWarnings(object),
        ...entryWarnings(object),
        ...graphWarnings(policy, this.#options),
        ...policyTemplateWarnings(object),
      ],
    };
  }

  #namespaceWarnings({ metadata }: KubernetesObject): readonly GovernanceWarning[] {
    const { governed, targets } = this.#options;
    const { namespace = '' } = metadata;
    const warning = (text: string): readonly GovernanceWarning[] => [
      { code: 'namespace', field: 'metadata.namespace', text },
    ];
    if (targets.hasCopies(namespace)) {
      return warning(
        'Policies in the namespace of the cluster are copies: create the Policy in another namespace, or it is not applied',
      );
    }
    return isGoverned(namespace, governed)
      ? []
      : warning(`Policies in namespace ${namespace} do not count: see --governance-namespaces`);
  }

  #setWarnings(set: JsonObject): readonly GovernanceWarning[] {
    const [namespace, name] = ['namespace', 'name'].map((field) => textOf(own(objectIn(set, 'metadata'), field)));
    const members = listIn(objectIn(set, 'spec'), 'policies')
      .slice(0, MAX_MEMBERS)
      .map((member) => textOf(member));
    const key = { namespace: namespace ?? '', name: name ?? '' };
    return [...this.#memberWarnings(key.namespace, members), ...setCycleWarnings(key, members, this.#options)];
  }

  #memberWarnings(namespace: string, members: readonly string[]): readonly GovernanceWarning[] {
    const { policies, graphs } = this.#options;
    const missing = graphs.isSynced
      ? [...members.entries()].filter(([, name]) => policies.get({ namespace, name }) === undefined)
      : [];
    return missing.slice(0, MAX_MISSING_MEMBERS).map(([index, name]) => {
      const nearest = nearestPolicy(policies, namespace, name);
      const hint = nearest === undefined ? '' : `: did you mean ${nearest}?`;
      const text = `Policy ${namespace}/${name} does not exist yet${hint}`;
      return { code: 'set-member', field: `spec.policies[${index}]`, text };
    });
  }
}
