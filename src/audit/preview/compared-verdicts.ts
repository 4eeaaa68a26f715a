// Notes what a new version of a policy changes for the objects of a kind, while these are judged.
import type { ApiResource } from '../../cluster/index.ts';
import type { EvaluationHost } from '../../evaluation/index.ts';
import { type GroupVersionResource, workloadOf } from '../../resources/index.ts';
import { type JsonObject, objectIn, own, textsOf } from '../../values/index.ts';
import type { SharedVerdicts } from '../shared-verdicts.ts';
import { changeOf } from './change.ts';
import { ChangeGroups } from './change-groups.ts';
import { controllerOf, type ObjectOwners } from './object-owners.ts';
import type { PreviewSides } from './preview-sides.ts';
import { REVISION_KINDS } from './stored-revisions.ts';

/** A workload that may be rolled back, and how it is judged. */
export interface KeptWorkload {
  readonly object: JsonObject;
  readonly type: ApiResource;
  readonly policies: readonly string[];
  readonly verdicts: Pick<SharedVerdicts, 'of'>;
}

/** What the kinds of a preview share. */
export interface PreviewState {
  readonly sides: PreviewSides;
  readonly host: Pick<EvaluationHost, 'evaluate'>;
  readonly owners: ObjectOwners;
  /** By uid. */
  readonly workloads: Map<string, KeptWorkload>;
}

/** Whether the template of a workload is a copy of that of its controller, which is judged itself. */
function isCopy(object: JsonObject, resource: GroupVersionResource): boolean {
  const createdBy = workloadOf(resource)?.createdBy;
  return createdBy !== undefined && controllerOf(object)?.kind === createdBy;
}

/** The verdicts of a kind. */
export class ComparedVerdicts implements Pick<SharedVerdicts, 'of'> {
  readonly #verdicts: Pick<SharedVerdicts, 'of'>;
  readonly #state: PreviewState;
  readonly #type: ApiResource;
  #changes = new ChangeGroups();

  constructor(verdicts: Pick<SharedVerdicts, 'of'>, type: ApiResource, state: PreviewState) {
    this.#verdicts = verdicts;
    this.#type = type;
    this.#state = state;
  }

  /** Of the last pass. */
  get changes(): ChangeGroups {
    return this.#changes;
  }

  /** Forgets what was found: the kind is read anew. */
  restart(): void {
    this.#changes = new ChangeGroups();
  }

  async of(
    object: JsonObject,
    resource: GroupVersionResource,
    policies: readonly string[],
  ): ReturnType<SharedVerdicts['of']> {
    const { sides, owners } = this.#state;
    const verdicts = await this.#verdicts.of(object, resource, policies);
    const [before, after] = [sides.verdictOf('old', verdicts), sides.verdictOf('new', verdicts)];
    const subject = sides.subjectOf(this.#type);
    if (subject === 'objects' || !isCopy(object, resource)) {
      this.#changes.add({ subject, change: changeOf(before, after), object, resource, before, after });
    }
    owners.note(object);
    this.#keep(object, policies);
    if (after.state === 'reject' || own(objectIn(object, 'metadata'), 'deletionTimestamp') !== undefined) {
      await this.#compareUpdates(object, resource);
    }
    return verdicts;
  }

  #keep(object: JsonObject, policies: readonly string[]): void {
    const { group, resource } = this.#type;
    const uid = own(objectIn(object, 'metadata'), 'uid');
    if (group === 'apps' && typeof uid === 'string' && REVISION_KINDS.some(({ workloads }) => workloads === resource)) {
      this.#state.workloads.set(uid, { object, type: this.#type, policies, verdicts: this.#verdicts });
    }
  }

  /** Whether the finalizers of an object may still be removed: without that, it cannot be deleted. */
  async #compareUpdates(object: JsonObject, resource: GroupVersionResource): Promise<void> {
    const { sides, host } = this.#state;
    const { finalizers, ...metadata } = objectIn(object, 'metadata');
    const policies = [...sides.updateIds('old'), ...sides.updateIds('new')];
    if (textsOf(finalizers).length === 0 || policies.length === 0) {
      return;
    }
    const updated = { object: { ...object, metadata }, oldObject: object, resource };
    const verdicts = await host.evaluate(updated, { policies });
    const [before, after] = [sides.verdictOf('old', verdicts), sides.verdictOf('new', verdicts)];
    const compared = changeOf(before, after);
    // Only whether the update passes counts.
    const change = compared === 'newlyRejected' ? compared : after.state === 'reject' ? 'stillRejected' : 'unchanged';
    this.#changes.add({ subject: 'finalizers', change, object, resource, before, after });
  }
}
