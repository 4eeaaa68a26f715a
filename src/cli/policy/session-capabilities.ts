// Host capabilities for commands: answered from a recorded session, or as on a machine without a cluster.
import { AsyncCapabilities, type HostCaller, ReplayPort, SessionRecorder } from '../../engine/capabilities/index.ts';
import { LazyImages } from '../../evaluation/index.ts';
import type { TrustRoot } from '../../modules/index.ts';
import type { SourcesConfig } from '../../modules/sources/index.ts';

/** Answers host capabilities, and keeps what could not be answered. */
export class SessionCapabilities {
  #capabilities = new AsyncCapabilities({ images: new LazyImages() });
  readonly #recorder = new SessionRecorder((...call) => this.#answer(...call));
  readonly #withoutCluster = new Set<string>();
  #replay: ReplayPort | undefined;

  /** Sets how registries are reached, by default without `sources.yml` and credentials, and the trust root of keyless signatures. */
  setSources(sources: SourcesConfig, trustRoot?: TrustRoot): void {
    this.#capabilities = new AsyncCapabilities({ images: new LazyImages(sources, trustRoot) });
  }

  /** Starts a new case, which may replay the text of a recorded session. */
  begin(session: string | undefined): void {
    this.#withoutCluster.clear();
    this.#replay = session === undefined ? undefined : new ReplayPort(session);
  }

  async answer(capability: string, payload: string, caller?: HostCaller): Promise<string> {
    return await this.#recorder.answer(capability, payload, caller);
  }

  /** Calls that the cluster would have answered. */
  get withoutCluster(): readonly string[] {
    return [...this.#withoutCluster];
  }

  /** Calls without an answer in the recorded session. */
  get notRecorded(): readonly string[] {
    return [...new Set(this.#replay?.unanswered)];
  }

  /** Errors that the recorded session answered with. */
  get recordedErrors(): readonly string[] {
    return this.#replay?.errors ?? [];
  }

  /** All calls so far and their answers, in kwctl's format. */
  recording(): string {
    return this.#recorder.text();
  }

  async #answer(capability: string, payload: string, caller?: HostCaller): Promise<string> {
    if (this.#replay !== undefined) {
      return this.#replay.request(capability, payload);
    }
    if (capability.startsWith('kubernetes/')) {
      this.#withoutCluster.add(capability);
      throw new Error(`no cluster is there to answer ${capability}`);
    }
    return await this.#capabilities.answer(capability, payload, caller);
  }
}
