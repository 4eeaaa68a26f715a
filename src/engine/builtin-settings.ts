import { createRequire } from 'node:module';
import type { Program } from '../cel/index.ts';
import type { BuiltinName } from '../modules/index.ts';
import type * as celPolicy from './cel-policy/index.ts';
import type { FieldProblem } from './values/field-problem.ts';
import type * as networkPolicy from './network-policy/index.ts';
import type * as podProfile from './pod-profile/index.ts';
import type { LintContext } from './cel-policy/lints/lint-policy.ts';
import type { FieldRead } from './cel-policy/expression-reads.ts';
import type { LintFinding } from './cel-policy/lints/lint-finding.ts';
import { EPHEMERAL_CONTAINERS_MISSED, missesUpdates } from './cel-policy/lints/pod-subresources.ts';
import type * as podSecurity from './pod-security/index.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const require = createRequire(import.meta.url);

/** Resource rules of settings: a request has to match one of them, and a rule of the policy. */
export type RequestConstraints = Pick<celPolicy.MatchResources, 'matchPolicy' | 'resourceRules'>;

export interface CheckedSettings {
  readonly problems: readonly FieldProblem[];
  readonly needs: readonly celPolicy.SettingsNeed[];
  /** The requests that the settings match, if they say so. */
  readonly constraints?: RequestConstraints | undefined;
  readonly nullReads: readonly celPolicy.NullRead[];
  /** Finds possible mistakes in settings without problems. */
  readonly lint: (context: LintContext) => readonly LintFinding[];
  /** What settings without problems have the policy read of requests and of their objects. */
  readonly reads: () => readonly FieldRead[];
}

/** Levels of the Pod Security Standards hold for ephemeral containers, too. */
const lintContainerRules: CheckedSettings['lint'] = ({ rules }) =>
  missesUpdates(rules, 'ephemeralcontainers')
    ? [{ code: 'pod-subresource', field: '', message: EPHEMERAL_CONTAINERS_MISSED }]
    : [];

const NO_LINT: CheckedSettings['lint'] = () => [];

/** Of policies that look at objects as a whole. */
const WHOLE_OBJECT: readonly FieldRead[] = [{ field: '', path: ['object'] }];
const EXEMPT_USERS: FieldRead = { field: 'exemptions.usernames', path: ['request', 'userInfo', 'username'] };
const readsObject = (): readonly FieldRead[] => WHOLE_OBJECT;

/** Validates settings of builtin modules before a policy is created. Keeps no state of the settings. */
export class BuiltinSettings {
  #environments: celPolicy.PolicyEnvironments | undefined;

  /** All mistakes, in the order of the settings; without mistakes, the rights that the settings need. */
  check(name: BuiltinName, settings: unknown): CheckedSettings {
    // Required on first use, like builtin guests: most processes check no settings.
    switch (name) {
      case 'cel': {
        const { parseSettings, lintPolicy, expressionReads } = loadCel();
        const environments = this.#celEnvironments();
        const { policy, problems = [] } = parseSettings(settings, environments);
        const { needs = [], constraints, nullReads = [] } = policy ?? {};
        const lint: CheckedSettings['lint'] =
          policy === undefined ? NO_LINT : (context) => lintPolicy(policy.compiled, environments, context);
        const reads = (): readonly FieldRead[] =>
          policy === undefined ? [] : [...selectorReads(constraints), ...expressionReads(policy.compiled.programs)];
        return { problems, needs, constraints, nullReads, lint, reads };
      }
      case 'pod-profile': {
        const { parsePodProfileSettings } = require(`./pod-profile/index.${extension}`) as typeof podProfile;
        const parsed = parsePodProfileSettings(settings);
        return { problems: parsed.problems ?? [], needs: [], nullReads: [], lint: NO_LINT, reads: readsObject };
      }
      case 'pod-security': {
        const { parsePodSecuritySettings } = require(`./pod-security/index.${extension}`) as typeof podSecurity;
        const parsed = parsePodSecuritySettings(settings);
        const exempt = parsed.settings?.exemptions.usernames.size ?? 0;
        const reads = exempt > 0 ? () => [...WHOLE_OBJECT, EXEMPT_USERS] : readsObject;
        return { problems: parsed.problems ?? [], needs: [], nullReads: [], lint: lintContainerRules, reads };
      }
      case 'network-policy-support': {
        const { parseNetworkPolicySettings } = require(`./network-policy/index.${extension}`) as typeof networkPolicy;
        const parsed = parseNetworkPolicySettings(settings);
        return { problems: parsed.problems ?? [], needs: [], nullReads: [], lint: NO_LINT, reads: readsObject };
      }
      default:
        return name satisfies never;
    }
  }

  /** Possible mistakes in match conditions, by their fields. */
  lintConditions(programs: ReadonlyMap<string, Program>, failurePolicy: 'Fail' | 'Ignore'): readonly LintFinding[] {
    return programs.size === 0 ? [] : loadCel().lintConditions(programs, failurePolicy, this.#celEnvironments());
  }

  #celEnvironments(): celPolicy.PolicyEnvironments {
    this.#environments ??= new (loadCel().PolicyEnvironments)({ hasWholeRequest: true });
    return this.#environments;
  }
}

/** What the selectors of settings read. */
function selectorReads(constraints: celPolicy.MatchResources | undefined): readonly FieldRead[] {
  const { objectSelector, namespaceSelector } = constraints ?? {};
  return [
    ...(objectSelector === undefined || objectSelector.isEmpty
      ? []
      : [{ field: 'matchConstraints.objectSelector', path: ['object', 'metadata', 'labels'] } as const]),
    ...(namespaceSelector === undefined || namespaceSelector.isEmpty
      ? []
      : [{ field: 'matchConstraints.namespaceSelector', path: ['namespaceObject', 'metadata', 'labels'] } as const]),
  ];
}

function loadCel(): typeof celPolicy {
  return require(`./cel-policy/index.${extension}`) as typeof celPolicy;
}
