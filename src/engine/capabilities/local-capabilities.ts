import type { ContextAwareResource } from '../../resources/index.ts';
import type { HostCaller, HostPort, InventoryMode } from './host-port.ts';
import { AnswerCache } from './answer-cache.ts';
import { InventoryCache } from './inventory-cache.ts';
import { LocalAnswers } from './local-answers.ts';

/** Answers synchronous capabilities in the thread of the guest, and forwards the others. */
export class LocalCapabilities implements HostPort {
  readonly #remote: HostPort;
  readonly #local: LocalAnswers | undefined;
  readonly #answers: AnswerCache;
  readonly #inventories: InventoryCache;

  /**
   * @param remote answers `net/…`, `oci/…` and `kubernetes/…`
   * @param isRecorded whether `remote` gets every call, because it records or replays a session. Default: no
   */
  constructor(remote: HostPort, isRecorded: boolean = false) {
    // Without revisions nothing is cached.
    this.#remote = isRecorded ? { request: (...call) => remote.request(...call) } : remote;
    this.#local = isRecorded ? undefined : new LocalAnswers();
    this.#answers = new AnswerCache(this.#remote);
    this.#inventories = new InventoryCache(this.#remote);
  }

  revisionOf(resources: readonly ContextAwareResource[]): string | undefined {
    return this.#remote.revisionOf?.(resources);
  }

  inventory(mode: InventoryMode, resources: readonly ContextAwareResource[]): string {
    return this.#inventories.get(mode, resources);
  }

  request(capability: string, payloadJson: string, caller?: HostCaller): string {
    return this.#local?.answer(capability, payloadJson) ?? this.#answers.request(capability, payloadJson, caller);
  }
}
