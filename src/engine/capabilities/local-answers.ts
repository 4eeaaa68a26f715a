import { EngineError } from '../values/errors.ts';
import type { JsonValue } from '../values/json-text.ts';
import { errorText, parseJson } from '../../values/index.ts';
import { CertificateVerifier } from './crypto.ts';

/** Host capabilities that are answered synchronously. */
export class LocalAnswers {
  readonly #verifier = new CertificateVerifier();

  /** The answer as JSON; undefined for asynchronous capabilities. Throws `capability-failed`. */
  answer(capability: string, payloadJson: string): string | undefined {
    if (capability === 'crypto/v1/is_certificate_trusted') {
      return JSON.stringify(this.#verify(parseJson(payloadJson) as JsonValue));
    }
    return undefined;
  }

  #verify(payload: JsonValue): { trusted: boolean; reason: string } {
    try {
      return this.#verifier.verify(payload);
    } catch (error) {
      throw new EngineError('capability-failed', `cannot verify the certificate: ${errorText(error)}`, {
        cause: error,
      });
    }
  }
}
