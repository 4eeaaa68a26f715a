import { BoundedPolicy } from './cel-policy/index.ts';
import { requestOf } from './cel-request.ts';
import { EngineError } from './errors.ts';
import type { JsonObject } from './json-text.ts';
import type { BoundedGuest, GuestInput } from './policy-guest.ts';
import { SettingsCache } from './settings-cache.ts';
import type { GuestVerdict, SettingsVerdict } from './verdict.ts';

/**
 * Settings that are kept ready, in characters: those of thousands of tenants, as most write them. What is made of them was seen to
 * take 130 times as many bytes, of loops within loops.
 */
const MAX_READY_LENGTH = 1024 * 1024;

/** `builtin:cel` where nobody can end what takes long: gives the verdicts that it can tell with a bound, and fails otherwise. */
export class BoundedCelGuest implements BoundedGuest {
  readonly mode = 'builtin';
  readonly #settings = new SettingsCache((json) => ({ policy: BoundedPolicy.of(json) }), MAX_READY_LENGTH);

  takes(settings: JsonObject): boolean {
    return BoundedPolicy.of(settings) !== undefined;
  }

  validate({ requestJson, settingsJson, isRaw }: GuestInput): GuestVerdict {
    const { policy } = this.#settings.get(settingsJson);
    const verdict = isRaw ? undefined : policy?.evaluate(requestOf(requestJson));
    if (verdict === undefined) {
      throw new EngineError('guest-error', 'the verdict is not known within the bound');
    }
    return verdict;
  }

  validateSettings(): SettingsVerdict {
    throw new EngineError('guest-error', 'settings are checked by builtin:cel itself');
  }

  checkProtocol(): void {}
}
