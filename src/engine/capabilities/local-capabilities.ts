import { EngineError, errorText } from '../errors.ts';
import type { HostPort } from '../host-port.ts';
import type { JsonValue } from '../json-text.ts';
import { CertificateVerifier } from './crypto.ts';

/** Answers what needs no waiting in the thread of the guest itself, and passes the rest on. */
export class LocalCapabilities implements HostPort {
  readonly #verifier = new CertificateVerifier();
  readonly #remote: HostPort;

  /** `remote` answers `net/…` and `kubernetes/…`. */
  constructor(remote: HostPort) {
    this.#remote = remote;
  }

  request(capability: string, payloadJson: string): string {
    if (capability === 'crypto/v1/is_certificate_trusted') {
      return JSON.stringify(this.#verify(JSON.parse(payloadJson) as JsonValue));
    }
    if (capability.startsWith('oci/')) {
      const message = `the host capability ${capability} is not supported yet: this version cannot ask registries or verify signatures`;
      throw new EngineError('capability-failed', message);
    }
    return this.#remote.request(capability, payloadJson);
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
