import { EngineError } from '../errors.ts';
import type { HostPort, InventoryMode } from '../host-port.ts';
import type { JsonValue } from '../json-text.ts';
import type { ContextAwareResource } from '../policy-definition.ts';
import { errorText, parseJson } from '../../values/index.ts';
import { AnswerCache } from './answer-cache.ts';
import { CertificateVerifier } from './crypto.ts';
import { InventoryCache } from './inventory-cache.ts';

/** Answers what needs no waiting in the thread of the guest itself, and passes the rest on. */
export class LocalCapabilities implements HostPort {
  readonly #verifier = new CertificateVerifier();
  readonly #remote: HostPort;
  readonly #answers: AnswerCache;
  readonly #inventories: InventoryCache;

  /** `remote` answers `net/…` and `kubernetes/…`. */
  constructor(remote: HostPort) {
    this.#remote = remote;
    this.#answers = new AnswerCache(remote);
    this.#inventories = new InventoryCache(remote);
  }

  revisionOf(resources: readonly ContextAwareResource[]): string | undefined {
    return this.#remote.revisionOf?.(resources);
  }

  inventory(mode: InventoryMode, resources: readonly ContextAwareResource[]): string {
    return this.#inventories.get(mode, resources);
  }

  request(capability: string, payloadJson: string): string {
    if (capability === 'crypto/v1/is_certificate_trusted') {
      return JSON.stringify(this.#verify(parseJson(payloadJson) as JsonValue));
    }
    if (capability.startsWith('oci/')) {
      const message = `the host capability ${capability} is not supported yet: this version cannot ask registries or verify signatures`;
      throw new EngineError('capability-failed', message);
    }
    return this.#answers.request(capability, payloadJson);
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
