import { createRequire } from 'node:module';
import type { BuiltinName } from '../modules/index.ts';
import type * as celPolicy from './cel-policy/index.ts';
import type { FieldProblem } from './field-problem.ts';
import type * as podSecurity from './pod-security/index.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const require = createRequire(import.meta.url);

/** Validates settings of builtin modules before a policy is created. Keeps no state of the settings. */
export class BuiltinSettings {
  #environments: celPolicy.PolicyEnvironments | undefined;

  /** All mistakes, in the order of the settings. Empty when the settings are valid. */
  problems(name: BuiltinName, settings: unknown): readonly FieldProblem[] {
    // Required on first use, like builtin guests: most processes check no settings.
    switch (name) {
      case 'cel': {
        const { parseSettings, PolicyEnvironments } = require(`./cel-policy/index.${extension}`) as typeof celPolicy;
        this.#environments ??= new PolicyEnvironments({ hasWholeRequest: true });
        return parseSettings(settings, this.#environments).problems ?? [];
      }
      case 'pod-security': {
        const { parsePodSecuritySettings } = require(`./pod-security/index.${extension}`) as typeof podSecurity;
        const parsed = parsePodSecuritySettings(settings);
        return parsed.settings === undefined ? parsed.problems : [];
      }
      default:
        return name satisfies never;
    }
  }
}
