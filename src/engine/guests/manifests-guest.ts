import type { CallContext } from '../../wasm/index.ts';
import { evaluateManifests, loadManifests, manifestProblemText, unmatchedManifests } from '../cel-policy/index.ts';
import type { LoadedManifests, PolicyManifestOptions, ManifestVerdict } from '../cel-policy/index.ts';
import { requestOf } from './cel-request.ts';
import { EngineError } from '../values/errors.ts';
import type { GuestInput, PolicyGuest } from './policy-guest.ts';
import type { GuestVerdict, SettingsVerdict } from '../verdict/guest-verdict.ts';

/** Evaluates Kubernetes' own admission policies from manifests, as an API server does. */
export class ManifestsGuest implements PolicyGuest {
  readonly mode = 'builtin';
  readonly #manifests: LoadedManifests;

  /** Throws EngineError `guest-error` with all mistakes in the manifests. */
  constructor(documents: readonly unknown[], options: PolicyManifestOptions = {}) {
    this.#manifests = loadManifests(documents, options);
    const { problems, validating, mutating } = this.#manifests;
    if (problems.length > 0) {
      throw new EngineError(
        'guest-error',
        `the manifests cannot be used:\n${problems.map(manifestProblemText).join('\n')}`,
      );
    }
    if (validating.length + mutating.length === 0) {
      const expected = 'expected a ValidatingAdmissionPolicy or MutatingAdmissionPolicy';
      const notes = this.#manifests.notes.map((note) => `\n${note}`).join('');
      throw new EngineError('guest-error', `there is no policy among the manifests: ${expected}${notes}`);
    }
  }

  /** Policies and bindings without effect, and the reasons. */
  get notes(): readonly string[] {
    return this.#manifests.notes;
  }

  unmatchedBecause(requestJson: Buffer): string | undefined {
    return unmatchedManifests(this.#manifests, requestOf(requestJson));
  }

  answer(requestJson: Buffer): ManifestVerdict {
    return evaluateManifests(this.#manifests, requestOf(requestJson));
  }

  validate({ requestJson, isRaw }: GuestInput, context: CallContext): GuestVerdict {
    if (isRaw) {
      throw new EngineError('guest-error', 'admission policies of Kubernetes do not support raw requests');
    }
    const { allowed, message, code, warnings, auditAnnotations, patchedObject, evaluated, messageProblems } =
      this.answer(requestJson);
    messageProblems.forEach((problem) => context.log(problem));
    if (allowed && evaluated.length === 0) {
      context.log('no policy with a binding is for this request');
    }
    return {
      accepted: allowed,
      ...(message === undefined ? {} : { message }),
      ...(code === undefined ? {} : { code }),
      ...(patchedObject === undefined ? {} : { mutatedObject: patchedObject }),
      auditAnnotations: Object.keys(auditAnnotations).length === 0 ? null : auditAnnotations,
      warnings: warnings.length === 0 ? null : warnings,
    };
  }

  validateSettings(): SettingsVerdict {
    return { valid: true };
  }

  start(): void {}

  checkProtocol(): void {}
}
