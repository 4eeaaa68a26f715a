// `portcullis rollout status`: waits until the newest state of a policy serves on all replicas, or has failed.
import { type Command, Option } from 'commander';
import { unlessForbidden, unlessGone } from '../../cluster/index.ts';
import { listRevisions } from '../../rollout/history/index.ts';
import { durationMs } from '../cluster/duration.ts';
import { waitFor } from '../cluster/wait-for.ts';
import { CliError } from '../errors.ts';
import { Progress } from '../progress.ts';
import { oneLine } from '../table.ts';
import { rolloutProgress, type RolloutProgress } from './rollout-progress.ts';
import {
  goneError,
  type RolledOutPolicy,
  rolloutCommandOf,
  type RolloutFlags,
  type RolloutTarget,
  withTarget,
} from './rollout-target.ts';

/** Characters of a note: all of a preview's message. */
const MAX_NOTE = 500;

interface StatusFlags extends RolloutFlags {
  readonly timeout: string;
  readonly watch: 'true' | 'false';
}

export function statusCommand(): Command {
  return rolloutCommandOf('status', 'wait until a policy serves as it is declared; exit code 1 when it cannot')
    .option('--timeout <duration>', 'how long to wait, such as 30s or 5m', '5m')
    .addOption(
      new Option('--watch <boolean>', 'false: print the status and do not wait')
        .choices(['true', 'false'])
        .default('true'),
    )
    .addHelpText(
      'after',
      `
Examples:
  portcullis rollout status cap/pinned-images --timeout 30s
  portcullis rollout status ap pinned-images -n shop --watch=false`,
    )
    .action(status);
}

async function status(args: readonly string[], flags: StatusFlags): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  await withTarget(args, flags, async (target) => {
    const now = rolloutProgress(target.policy);
    const result =
      now.kind !== 'waiting' || flags.watch === 'false' ? now : await settled(target, timeoutMs, flags.timeout);
    if (result.kind === 'failed') {
      throw new CliError(`${target.name}: ${result.text}`, { hint: result.hint });
    }
    process.stdout.write(`${target.name}: ${result.text}\n`);
    await notePreview(target);
  });
}

/** Says what the newest revision changes for existing objects, to who may read it, where that is known. */
async function notePreview({ cluster, policy, productNamespace }: RolloutTarget): Promise<void> {
  const reading = listRevisions(cluster, policy, productNamespace);
  const newest = (await unlessForbidden(unlessGone(reading)))?.at(-1);
  const { preview } = newest?.status ?? {};
  if (newest !== undefined && preview !== undefined && preview.state !== 'Unknown') {
    const what = `what revision ${newest.spec.revision} changes for existing objects`;
    process.stderr.write(`note: ${what}: ${oneLine(preview.message, MAX_NOTE)}\n`);
  }
}

/** Waits until the rollout is done or failed. @throws CliError after the timeout, or when the policy is deleted */
async function settled(target: RolloutTarget, timeoutMs: number, timeout: string): Promise<RolloutProgress> {
  const { cluster, type, key, name } = target;
  const progress = new Progress();
  const deadline = AbortSignal.timeout(timeoutMs);
  let last: RolloutProgress | undefined;
  await progress.during(name, async (update) => {
    const isSettled = (object: unknown): boolean => {
      if (object === undefined) {
        throw goneError(target);
      }
      const seen = rolloutProgress(object as RolledOutPolicy);
      if (seen.text !== last?.text && seen.kind === 'waiting') {
        update(`${name}: ${seen.text}`);
        if (!process.stderr.isTTY) {
          progress.line(`${name}: ${seen.text}`);
        }
      }
      last = seen;
      return seen.kind !== 'waiting';
    };
    try {
      await waitFor(cluster, type, key, isSettled, deadline);
    } catch (error) {
      if (deadline.aborted) {
        const isUnseen = last?.kind === 'waiting' && last.isUnseen === true;
        const hint = `${isUnseen ? 'Does its controller run? ' : ''}\`portcullis describe\` shows the status and events of the policy.`;
        throw new CliError(`${name}: after ${timeout} still: ${last?.text ?? 'no status'}`, {
          cause: error,
          hint,
        });
      }
      throw error;
    }
  });
  return last ?? rolloutProgress(target.policy);
}
