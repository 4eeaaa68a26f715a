// Host capabilities for commands: answered from a recorded session, or as on a machine without a cluster.
import { AsyncCapabilities, ReplayPort, SessionRecorder } from '../../engine/index.ts';

/** Answers host capabilities, and keeps what could not be answered. */
export class SessionCapabilities {
  readonly #capabilities = new AsyncCapabilities();
  readonly #recorder = new SessionRecorder((capability, payload) => this.#answer(capability, payload));
  readonly #withoutCluster = new Set<string>();
  #replay: ReplayPort | undefined;

  /** Starts anew, with the text of a recorded session. */
  begin(session: string | undefined): void {
    this.#withoutCluster.clear();
    this.#replay = session === undefined ? undefined : new ReplayPort(session);
  }

  async answer(capability: string, payload: string): Promise<string> {
    return await this.#recorder.answer(capability, payload);
  }

  /** Calls that the cluster would have answered. */
  get withoutCluster(): readonly string[] {
    return [...this.#withoutCluster];
  }

  /** Calls without an answer in the recorded session. */
  get notRecorded(): readonly string[] {
    return [...new Set(this.#replay?.unanswered)];
  }

  /** All calls so far and their answers, in kwctl's format. */
  recording(): string {
    return this.#recorder.text();
  }

  async #answer(capability: string, payload: string): Promise<string> {
    if (this.#replay !== undefined) {
      return this.#replay.request(capability, payload);
    }
    if (capability.startsWith('kubernetes/')) {
      this.#withoutCluster.add(capability);
      throw new Error(`no cluster is there to answer ${capability}`);
    }
    return await this.#capabilities.answer(capability, payload);
  }
}
