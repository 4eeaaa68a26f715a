// Policies of a policies file, which is read whenever it changes.
import { CLUSTER_OWNER, EvaluationError } from '../../evaluation/index.ts';
import type { ObjectReference } from '../../engine/index.ts';
import type { CompiledPolicyModule, FindResult, ReadPolicy } from '../../evaluation/index.ts';
import { FileWatch } from '../../files/index.ts';
import type { PoliciesAnswer } from '../status/operations-routes.ts';
import type { ServedPolicyPhase, ServedPolicyStatus } from '../status/served-policy-status.ts';
import { FileObjects, type ObjectFinder } from './file-objects.ts';
import { PolicyRegistry } from './policy-registry.ts';
import { type BucketKnowledge, type PolicyHost, type PolicySource, settledWithin } from './policy-source.ts';
import type { WantedChanges, WantedPolicy } from './wanted-policy.ts';

/** Files that are read as one policies file, in the place of one. */
export interface PolicyManifests {
  /** The paths of the files, listed before each read. @throws an error whose message says what is wrong */
  readonly list: () => Promise<readonly string[]>;
  /** @throws an error whose message says what is wrong */
  readonly convert: (texts: readonly string[], paths: readonly string[]) => Promise<ConvertedManifests>;
}

interface ConvertedManifests {
  /** The text of a policies file. */
  readonly text: string;
  /** For parameters of the policies. */
  readonly objects: ObjectFinder;
}

/** A policies file as the source of policies. */
export class FilePolicies implements PolicySource {
  readonly #file: string;
  readonly #manifests: PolicyManifests | undefined;
  readonly #host: PolicyHost;
  readonly #registry: PolicyRegistry;
  readonly #entries = new FileEntries();
  readonly #objects: FileObjects;
  readonly #watch: FileWatch;
  #source: { loadedAt: string | null; error: string | null } = { loadedAt: null, error: null };
  #isLoaded = false;

  /**
   * @param file path of the policies file
   * @param manifests the files to read in its place. Default: none
   */
  constructor(file: string, host: PolicyHost, manifests?: PolicyManifests) {
    const { loader, record } = host;
    this.#file = file;
    this.#manifests = manifests;
    this.#host = host;
    this.#objects = new FileObjects((change) => host.publishWatched(change));
    this.#registry = new PolicyRegistry(
      {
        // The loader has read the whole file.
        read: async (policies) => policies.map(({ spec }) => spec as ReadPolicy),
        load: (requests, done) => loader.load(requests, done),
        memory: host.accountMemory(() => CLUSTER_OWNER),
        publish: (change, staged) => host.publish(change, staged),
        phaseChanged: (id, change) => host.phaseChanged(id, change),
        changeEnded: (result) => host.changeEnded(result),
        servingChanged: () => {
          loader.keep(this.modules().map(({ digest }) => digest));
          record.changed(() => this.#registry.lastGood());
        },
      },
      record.read({ file }),
    );
    this.#watch = new FileWatch(manifests?.list ?? [file], {
      changed: (contents, paths) =>
        this.#changed(
          contents.map((content) => content.toString('utf8')),
          paths,
        ),
      failed: (error) => this.#failed(error),
    });
  }

  async start(): Promise<void> {
    await this.#watch.start();
    await this.settledInTime();
    // Not ready while the file is invalid and nothing served before the restart.
    this.#isLoaded = this.#source.loadedAt !== null || this.#registry.lastGood().length > 0;
  }

  check(): Promise<void> {
    return this.#watch.check();
  }

  retryNow(): void {
    this.#registry.retryNow();
  }

  settledInTime(): Promise<void> {
    const isRead = this.#source.loadedAt !== null;
    return settledWithin(isRead ? this.#registry.settled() : this.#registry.restored(), this.#host.readyWaitMs);
  }

  notReady(): string | undefined {
    if (this.#isLoaded) {
      return undefined;
    }
    const isUnusable = this.#source.loadedAt === null && this.#source.error !== null;
    return isUnusable ? 'the policies file cannot be used' : 'policies are being loaded';
  }

  isLoading(id: string): boolean {
    return this.#source.loadedAt === null || this.#entries.has(id);
  }

  buckets(): BucketKnowledge {
    return 'none';
  }

  find(object: ObjectReference): Promise<FindResult> {
    return Promise.resolve(this.#objects.find(object));
  }

  policiesAnswer(): PoliciesAnswer {
    return { source: { path: this.#file, ...this.#source }, policies: this.#registry.statuses() };
  }

  status(id: string): ServedPolicyStatus | undefined {
    return this.#registry.status(id);
  }

  phases(): Iterable<readonly [id: string, phase: ServedPolicyPhase]> {
    return this.#registry.phases();
  }

  modules(): CompiledPolicyModule[] {
    return this.#registry.modules();
  }

  activationFailed(id: string, message: string): void {
    this.#registry.activationFailed(id, message);
  }

  monitored(): void {
    // Without a cluster there is no status to write; the log has it.
  }

  excepted(): void {
    // Without a cluster there are no exceptions.
  }

  async stop(): Promise<void> {
    this.#watch.stop();
    this.#registry.stop();
  }

  async close(): Promise<void> {
    if (this.#source.loadedAt !== null || this.#source.error !== null) {
      await this.#host.record.flush(this.#registry.lastGood());
    }
  }

  async #changed(texts: readonly string[], paths: readonly string[]): Promise<void> {
    const { loader, log } = this.#host;
    const started = performance.now();
    try {
      const converted = await this.#manifests?.convert(texts, paths);
      const entries = await loader.parse(converted?.text ?? texts[0] ?? '', this.#file);
      this.#objects.replace(converted?.objects);
      const isFirst = this.#source.loadedAt === null;
      this.#source = { loadedAt: new Date().toISOString(), error: null };
      const changes = this.#entries.changes(entries);
      if (isFirst) {
        this.#registry.apply(changes, true);
      } else {
        await this.#registry.applyInTurns(changes);
      }
      const problems = entries.flatMap((entry) => ('problems' in entry ? [entry.problems.length] : []));
      const counts = { policies: entries.length - problems.length, problems: problems.reduce((a, b) => a + b, 0) };
      log.info(counts, 'policies file read');
      void this.settledInTime().then(() => (this.#isLoaded = true));
      void this.#registry.settled().then(() => this.#host.reloadTook(performance.now() - started));
    } catch (error) {
      if (error instanceof EvaluationError && error.code === 'thread-ended') {
        // The content was not parsed: read the file again.
        this.#watch.forget();
      }
      this.#failed(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /**
   * The policies file is invalid: its previous content stays in effect; at the start, what served before the restart.
   */
  #failed(error: Error): void {
    const isFirst = this.#source.loadedAt === null && this.#source.error === null;
    this.#source = { ...this.#source, error: error.message };
    this.#host.log.error({ file: this.#file, error: error.message }, 'policies file not used');
    if (isFirst) {
      this.#registry.restore(error.message);
    }
  }
}

/** Compares the entries of a policies file with the previous ones. Each is a version to serve. */
export class FileEntries {
  /** Hashes of the entries, by id. */
  #identities = new Map<string, string>();

  has(id: string): boolean {
    return this.#identities.has(id);
  }

  /** Differences to the previous entries. */
  changes(entries: readonly ReadPolicy[]): WantedChanges {
    const identities = new Map<string, string>();
    const changes = new Map<string, WantedPolicy | undefined>();
    for (const entry of entries) {
      const [id, uid] =
        'definition' in entry ? [entry.definition.id, entry.hash] : [entry.id, `problem:${entry.problems.join('; ')}`];
      identities.set(id, uid);
      if (this.#identities.get(id) !== uid) {
        changes.set(id, { serving: { name: id, uid, snapshot: entry, order: 0 }, staged: [] });
      }
    }
    for (const id of this.#identities.keys()) {
      if (!identities.has(id)) {
        changes.set(id, undefined);
      }
    }
    this.#identities = identities;
    return changes;
  }
}
