// Says in the status of each new revision what it changes for existing objects.
import type { Logger } from 'pino';
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import { pinnedSpec } from '../../control/index.ts';
import {
  type AdmissionPolicyObject,
  AUDITOR_FIELD_MANAGER,
  keyOf,
  POLICY_KINDS,
  POLICY_REVISIONS,
  policyId,
  type PolicyRevision,
  type RevisionPreview,
  snapshotOf,
} from '../../resources/index.ts';
import {
  Controller,
  ObjectCache,
  type ObjectIndex,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  watch,
} from '../../runtime/index.ts';
import { asJson, errorText } from '../../values/index.ts';
import { auditPolicy, type AuditedInstallation, type AuditPolicy } from '../audit-policy.ts';
import { exceptionsOfCluster } from '../exceptions-of-cluster.ts';
import { type Preview, previewCluster } from '../preview/index.ts';
import { comparedRevisions, type ComparedRevisions } from './compared-revisions.ts';
import { IdleHost } from './idle-host.ts';
import { previewStatus, unknownPreview } from './preview-status.ts';

/** Time limit of one preview. Those of other policies wait for it, rollouts do not. Milliseconds. */
const TIME_LIMIT_MS = 120_000;
/** Longer than that, so that a preview that takes too long is noted as such. Milliseconds. */
const RECONCILE_LIMIT_MS = TIME_LIMIT_MS + 60_000;
const TOO_LONG = `it takes longer than ${TIME_LIMIT_MS / 1000} s`;
/** Previews that fail, as with an API server that restarts, are tried again this often. */
const MAX_RETRIES = 5;

export interface RevisionPreviewsOptions {
  readonly cluster: Pick<Cluster, 'get' | 'list' | 'watch' | 'patch' | 'discovery'>;
  readonly caches: SharedCaches;
  readonly installation: AuditedInstallation;
  /** Whether Secrets are read. */
  readonly includesSecrets?: boolean;
  /** Makes and starts a host of evaluations, whose exceptions are not those of the audit. */
  readonly startHost: ConstructorParameters<typeof IdleHost>[0];
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
}

/** Previews revisions on their way to serving, one after the other. Owners take turns. */
export class RevisionPreviews implements Runnable {
  readonly name = 'revision-previews';
  readonly #options: RevisionPreviewsOptions;
  /** Of each kind, by id. */
  readonly #policies: readonly ObjectIndex<AdmissionPolicyObject>[];

  constructor(options: RevisionPreviewsOptions) {
    this.#options = options;
    this.#policies = POLICY_KINDS.map((kind) => options.caches.cache(kind).index((policy) => [policyId(policy)]));
  }

  async start(signal: AbortSignal): Promise<void> {
    const { cluster, installation, startHost, log, metrics } = this.#options;
    const { productNamespace: namespace } = installation;
    await using host = new IdleHost(startHost);
    const revisions = new ObjectCache({ cluster, type: POLICY_REVISIONS, namespace, transform: withoutSnapshot, log });
    const byPolicy = revisions.index(({ spec }) => [spec.policyId]);
    const controller = new Controller({
      name: this.name,
      reconcile: async (key, stopped, { failures }) => {
        const revision = revisions.get(key);
        const compared = revision && comparedRevisions(revision, byPolicy.get(revision.spec.policyId), Date.now());
        if (compared !== undefined) {
          await this.#preview(compared, host, { failures, signal: stopped });
        }
      },
      watches: [watch(revisions)],
      ownerOf: (key) => revisions.get(key)?.spec.policy.namespace,
      timeoutMs: RECONCILE_LIMIT_MS,
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
    await Promise.all([revisions.start(signal), controller.start(signal)]);
  }

  async #preview(
    { revision, base }: ComparedRevisions,
    host: IdleHost,
    { failures, signal }: { readonly failures: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const origin = { comparedWith: base?.spec.revision, now: Date.now() };
    const timeout = AbortSignal.timeout(TIME_LIMIT_MS);
    try {
      const preview = await this.#compared({ revision, base }, host, AbortSignal.any([signal, timeout]));
      if (preview !== undefined) {
        await this.#write(revision, previewStatus(preview, origin), signal);
      }
    } catch (error) {
      if (signal.aborted || (!timeout.aborted && failures < MAX_RETRIES)) {
        throw error;
      }
      const [reason, message] = timeout.aborted
        ? (['TimedOut', TOO_LONG] as const)
        : (['Failed', errorText(error)] as const);
      await this.#write(revision, unknownPreview(reason, message, origin), signal);
    }
  }

  /** Undefined: the policy, or one of the revisions, is gone. */
  async #compared(
    { revision, base }: ComparedRevisions,
    host: IdleHost,
    signal: AbortSignal,
  ): Promise<Preview | undefined> {
    const { cluster, includesSecrets = false } = this.#options;
    const [after, before] = await Promise.all([this.#version(revision, signal), base && this.#version(base, signal)]);
    if (after === undefined || (base !== undefined && before === undefined)) {
      return undefined;
    }
    const versions = { new: [after], old: before === undefined ? [] : [before] };
    const { exceptions, coverage } = await exceptionsOfCluster(cluster, versions.new, { signal });
    const options = { ...versions, exceptions, scope: { includesSecrets }, signal };
    const preview = await host.use((own) => previewCluster(cluster, { ...options, host: own }));
    return { ...preview, coverage: [...coverage, ...preview.coverage] };
  }

  /** The policy of a revision, with modules as they were pinned. Undefined: one of them is gone. */
  async #version(known: PolicyRevision, signal: AbortSignal): Promise<AuditPolicy | undefined> {
    const { cluster, installation } = this.#options;
    const { spec } = known;
    const policy = this.#policies
      .flatMap((byId) => [...byId.get(spec.policyId)])
      .find((one) => one.metadata.uid === spec.policy.uid);
    const revision = policy && (await unlessGone(cluster.get(POLICY_REVISIONS, keyOf(known), { signal })));
    if (policy === undefined || revision === undefined) {
      return undefined;
    }
    const pinned = pinnedSpec(snapshotOf(revision), revision.status?.modules ?? []);
    const read = auditPolicy({ ...policy, spec: pinned } as AdmissionPolicyObject, installation);
    if ('id' in read) {
      return read;
    }
    throw new Error(`revision ${spec.revision} cannot be read: ${read.problems.join('; ')}`);
  }

  /** Nothing but the preview, whatever the controller has written since. */
  async #write(revision: PolicyRevision, preview: RevisionPreview, signal: AbortSignal): Promise<void> {
    const body = [
      { op: 'test', path: '/metadata/uid', value: revision.metadata.uid ?? '' },
      { op: 'add', path: '/status/preview', value: asJson(preview) },
    ] as const;
    const options = { subresource: 'status', fieldManager: AUDITOR_FIELD_MANAGER, signal };
    const patch = { type: 'json', body } as const;
    await unlessGone(this.#options.cluster.patch(POLICY_REVISIONS, keyOf(revision), patch, options));
  }
}

/** Specs are read when they are needed. */
function withoutSnapshot({ metadata, spec, status, ...rest }: PolicyRevision): PolicyRevision {
  const { managedFields: _, ...kept } = metadata;
  const { modules: __, warnings: ___, ...facts } = status ?? {};
  return { ...rest, metadata: kept, spec: { ...spec, snapshot: {} }, status: facts };
}
