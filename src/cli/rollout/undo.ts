// `portcullis rollout undo`: asks the controller to restore an earlier revision, waits for it, and prints the result.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { ApiError } from '../../cluster/index.ts';
import {
  ANNOTATIONS,
  CONTROLLER_FIELD_MANAGER,
  type KubernetesObject,
  type PolicyRevision,
  ROLLBACK_FAILED,
} from '../../resources/index.ts';
import { previousRevision, secondRollbackNote } from '../../control/index.ts';
import { EVENTS } from '../../runtime/index.ts';
import { durationMs } from '../cluster/duration.ts';
import { waitFor } from '../cluster/wait-for.ts';
import { CliError } from '../errors.ts';
import { Progress } from '../progress.ts';
import { oneLine } from '../table.ts';
import { rollbackCandidate } from '../../rollout/history/index.ts';
import { readableRevisions, revisionOf } from './read-revisions.ts';
import {
  annotate,
  goneError,
  pinOf,
  type RolledOutPolicy,
  revisionNumber,
  rolloutCommandOf,
  type RolloutFlags,
  type RolloutTarget,
  withTarget,
} from './rollout-target.ts';

interface UndoFlags extends RolloutFlags {
  readonly toRevision?: number;
  readonly dryRun?: true;
  readonly timeout: string;
}

/** Attempts to read the event of a failed rollback, which is written after the policy. */
const EVENT_ATTEMPTS = 10;
/** Delay between two attempts. Milliseconds. */
const EVENT_PAUSE_MS = 200;

interface EventObject extends KubernetesObject {
  readonly count?: number;
  readonly message?: string;
}

export function undoCommand(): Command {
  return rolloutCommandOf('undo', 'restore an earlier revision of a policy, with its modules pinned by digest')
    .addOption(
      new Option('--to-revision <number>', 'the revision (default: the last one that served before)').argParser(
        revisionNumber,
      ),
    )
    .option('--dry-run', 'only check whether the rollback is possible')
    .option('--timeout <duration>', 'how long to wait for the controller', '10s')
    .addHelpText(
      'after',
      `
Examples:
  portcullis rollout undo cap/pinned-images
  portcullis rollout undo cap/pinned-images --to-revision 2

It is the same as: kubectl annotate cap pinned-images ${ANNOTATIONS.rollbackTo}=2   (or =previous)`,
    )
    .action(undo);
}

async function undo(args: readonly string[], flags: UndoFlags): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  await withTarget(args, flags, async (target) => {
    const revisions = await readableRevisions(target);
    const restored =
      revisions === undefined ? flags.toRevision : restoredRevision(target, revisions, flags.toRevision).spec.revision;
    const wanted = restored === undefined ? 'previous' : String(restored);
    const what = restored === undefined ? 'the revision before' : `revision ${restored}`;
    const failures = await failedRollbacks(target);
    const before = await annotate(target, 'rollbackTo', wanted, flags.dryRun === true);
    if (flags.dryRun === true) {
      process.stdout.write(`${target.name} would be rolled back to ${what} (dry run)\n`);
      return;
    }
    const after = await rollbackHandled(target, timeoutMs, flags.timeout);
    if ((after.metadata.generation ?? 0) === (before.metadata.generation ?? 0)) {
      await explainUnchanged(target, what, failures);
      return;
    }
    process.stdout.write(`${target.name} rolled back to ${what}\n`);
    const note =
      flags.toRevision === undefined
        ? secondRollbackNote(
            (revisions ?? []).map(({ spec }) => spec),
            '--to-revision',
          )
        : undefined;
    if (note !== undefined) {
      process.stderr.write(`note: ${note}\n`);
    }
    if (isOwnedByController(after)) {
      process.stderr.write(
        `note: no other field manager owned the spec, so ${CONTROLLER_FIELD_MANAGER} does: the next server-side apply needs --force-conflicts\n`,
      );
    }
    const pin = pinOf(after);
    if (pin !== undefined) {
      process.stderr.write(`note: it is pinned to revision ${oneLine(pin, 20)}, which serves until it is unpinned\n`);
    }
  });
}

/** Whether the controller found no owner to return the fields of the spec to. */
function isOwnedByController({ metadata }: RolledOutPolicy): boolean {
  return (metadata.managedFields ?? []).some(
    ({ manager, fieldsV1 = {} }) => manager === CONTROLLER_FIELD_MANAGER && Object.hasOwn(fieldsV1, 'f:spec'),
  );
}

/** The revision that the rollback restores, so that a missing one is reported without a wait for the controller. @throws CliError */
function restoredRevision(
  target: RolloutTarget,
  revisions: readonly PolicyRevision[],
  wanted: number | undefined,
): PolicyRevision {
  if (wanted !== undefined) {
    return revisionOf(target, revisions, wanted);
  }
  const candidates = revisions.map((revision) => ({ ...rollbackCandidate(revision), revision }));
  const previous = previousRevision(target.policy.spec, candidates);
  if (previous === undefined) {
    throw new CliError(`no other revision of ${target.name} has served`);
  }
  return previous.revision;
}

/** Waits until the controller removes the annotation, which it does after a rollback, successful or not. */
async function rollbackHandled(target: RolloutTarget, timeoutMs: number, timeout: string): Promise<RolledOutPolicy> {
  const { cluster, type, key, name } = target;
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const after = await new Progress().during(`${name}: waiting for the controller`, () =>
      waitFor(
        cluster,
        type,
        key,
        (object) => object?.metadata.annotations?.[ANNOTATIONS.rollbackTo] === undefined,
        deadline,
      ),
    );
    if (after === undefined) {
      throw goneError(target);
    }
    return after as RolledOutPolicy;
  } catch (error) {
    if (deadline.aborted) {
      throw new CliError(`${name}: the controller has not handled the rollback after ${timeout}`, {
        hint: `It will when it runs, unless the annotation ${ANNOTATIONS.rollbackTo} is removed from the policy.`,
        cause: error,
      });
    }
    throw error;
  }
}

/**
 * Prints why the controller did not change the policy: either it has the wanted spec already, or an event has the reason.
 * @param before the events before the rollback
 */
async function explainUnchanged(target: RolloutTarget, what: string, before: Failures | undefined): Promise<void> {
  if (before === undefined) {
    throw new CliError(`the controller did not change ${target.name}`, {
      hint: `Either it has the spec of ${what} already, or that revision is not kept. An event of the policy has the reason, and you may not read events.`,
    });
  }
  const failure = await newFailure(target, before);
  if (failure !== undefined) {
    throw new CliError(`${target.name} was not rolled back: ${oneLine(failure)}`);
  }
  process.stdout.write(`${target.name} is unchanged: it has the spec of ${what} already\n`);
}

/** The message of an event that is newer than `before`. */
async function newFailure(target: RolloutTarget, before: Failures): Promise<string | undefined> {
  for (let attempt = 0; attempt < EVENT_ATTEMPTS; attempt += 1) {
    await sleep(attempt === 0 ? 0 : EVENT_PAUSE_MS);
    for (const [name, { count, message }] of (await failedRollbacks(target)) ?? []) {
      if (count > (before.get(name)?.count ?? 0)) {
        return message;
      }
    }
  }
  return undefined;
}

/** Events about failed rollbacks, by their name. */
type Failures = ReadonlyMap<string, { readonly count: number; readonly message: string }>;

/** The events about failed rollbacks of the policy; undefined when reading them is forbidden. */
async function failedRollbacks({ cluster, policy, key }: RolloutTarget): Promise<Failures | undefined> {
  const involved = `involvedObject.uid=${policy.metadata.uid ?? ''}`;
  try {
    const { items } = await cluster.list<EventObject>(EVENTS, {
      // Events about cluster-scoped objects are in namespace default.
      namespace: key.namespace ?? 'default',
      fieldSelector: `${involved},reason=${ROLLBACK_FAILED}`,
    });
    return new Map(
      items.map(({ metadata, count = 1, message = '' }) => [metadata.name ?? '', { count, message }] as const),
    );
  } catch (error) {
    if (error instanceof ApiError) {
      return undefined;
    }
    throw error;
  }
}
