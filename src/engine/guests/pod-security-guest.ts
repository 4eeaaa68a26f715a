import { EngineError } from '../values/errors.ts';
import { joinedProblems } from '../values/field-problem.ts';
import { checkPodSecurity, parsePodSecuritySettings } from '../pod-security/index.ts';
import type { GuestInput, PolicyGuest } from './policy-guest.ts';
import { SettingsCache } from './settings-cache.ts';
import type { GuestVerdict, SettingsVerdict } from '../verdict/guest-verdict.ts';
import { parseJson } from '../../values/index.ts';

/** `builtin:pod-security`: the Pod Security Standards. */
export class PodSecurityGuest implements PolicyGuest {
  readonly mode = 'builtin';
  readonly #settings = new SettingsCache(parsePodSecuritySettings);

  validate({ requestJson, settingsJson }: GuestInput): GuestVerdict {
    const parsed = this.#settings.get(settingsJson);
    if (parsed.settings === undefined) {
      throw new EngineError('guest-error', `the settings cannot be used: ${joinedProblems(parsed.problems)}`);
    }
    const { warnings, ...verdict } = checkPodSecurity(parseJson(requestJson.toString()), parsed.settings);
    return { ...verdict, warnings: warnings.length === 0 ? null : warnings };
  }

  validateSettings(settingsJson: string): SettingsVerdict {
    const parsed = this.#settings.get(settingsJson);
    return parsed.settings !== undefined ? { valid: true } : { valid: false, message: joinedProblems(parsed.problems) };
  }

  start(): void {}

  checkProtocol(): void {}
}
