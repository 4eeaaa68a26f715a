import { parseJson } from '../../values/index.ts';
import { EngineError } from '../values/errors.ts';
import { joinedProblems } from '../values/field-problem.ts';
import type { GuestVerdict, SettingsVerdict } from '../verdict/guest-verdict.ts';
import { applyPodProfile, parsePodProfileSettings } from '../pod-profile/index.ts';
import type { GuestInput, PolicyGuest } from './policy-guest.ts';
import { MAX_CHEAP_SETTINGS, SettingsCache } from './settings-cache.ts';

/** `builtin:pod-profile`: the successor of PodSecurityPolicy. */
export class PodProfileGuest implements PolicyGuest {
  readonly mode = 'builtin';
  readonly #settings = new SettingsCache(parsePodProfileSettings, MAX_CHEAP_SETTINGS);

  validate({ requestJson, settingsJson }: GuestInput): GuestVerdict {
    const parsed = this.#settings.get(settingsJson);
    if (parsed.settings === undefined) {
      throw new EngineError('guest-error', `the settings cannot be used: ${joinedProblems(parsed.problems)}`);
    }
    const verdict = applyPodProfile(parseJson(requestJson.toString()), parsed.settings);
    return { ...verdict, auditAnnotations: null, warnings: null };
  }

  validateSettings(settingsJson: string): SettingsVerdict {
    // Not kept: the loader validates the settings of all tenants, and evaluates no request.
    const parsed = parsePodProfileSettings(parseJson(settingsJson));
    return parsed.settings === undefined ? { valid: false, message: joinedProblems(parsed.problems) } : { valid: true };
  }

  start(): void {}

  checkProtocol(): void {}
}
