import { createRequire } from 'node:module';
import type { BuiltinName } from '../modules/index.ts';
import type * as celPolicy from './cel-policy/index.ts';
import type { FieldProblem } from './field-problem.ts';
import type * as networkPolicy from './network-policy/index.ts';
import type * as podProfile from './pod-profile/index.ts';
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
  /** Fields with mistakes that API servers tolerated once, and what they are. */
  readonly warnings?: readonly FieldProblem[];
}

/** Validates settings of builtin modules before a policy is created. Keeps no state of the settings. */
export class BuiltinSettings {
  #environments: celPolicy.PolicyEnvironments | undefined;

  /** All mistakes, in the order of the settings; without mistakes, the rights that the settings need. */
  check(name: BuiltinName, settings: unknown): CheckedSettings {
    // Required on first use, like builtin guests: most processes check no settings.
    switch (name) {
      case 'cel': {
        const { parseSettings, plainReceiverText, PolicyEnvironments } = require(
          `./cel-policy/index.${extension}`,
        ) as typeof celPolicy;
        this.#environments ??= new PolicyEnvironments({ hasWholeRequest: true });
        const { policy, problems = [] } = parseSettings(settings, this.#environments);
        const { needs = [], constraints, nullReads = [] } = policy ?? {};
        const warnings = (policy?.compiled.plainReceivers ?? []).map((misuse) => ({
          field: misuse.field,
          message: plainReceiverText(misuse),
        }));
        return { problems, needs, constraints, nullReads, warnings };
      }
      case 'pod-profile': {
        const { parsePodProfileSettings } = require(`./pod-profile/index.${extension}`) as typeof podProfile;
        const parsed = parsePodProfileSettings(settings);
        return { problems: parsed.problems ?? [], needs: [], nullReads: [] };
      }
      case 'pod-security': {
        const { parsePodSecuritySettings } = require(`./pod-security/index.${extension}`) as typeof podSecurity;
        const parsed = parsePodSecuritySettings(settings);
        return { problems: parsed.problems ?? [], needs: [], nullReads: [] };
      }
      case 'network-policy-support': {
        const { parseNetworkPolicySettings } = require(`./network-policy/index.${extension}`) as typeof networkPolicy;
        const parsed = parseNetworkPolicySettings(settings);
        return { problems: parsed.problems ?? [], needs: [], nullReads: [] };
      }
      default:
        return name satisfies never;
    }
  }
}
