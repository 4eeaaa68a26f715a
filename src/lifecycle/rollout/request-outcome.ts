// What requests of a policy get. It follows from the webhook as read back and from what replicas say that they answer, never
// from what is declared: a revision that cannot be loaded leaves the answer to the one before it.
import { listed } from '../../values/index.ts';
import {
  desiredRevision,
  hasServed,
  lastServedRevision,
  REASONS,
  type ReplicaFacts,
  servingRevision,
} from '../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from './admission-rollout-view.ts';
import { isCovered } from './webhook-state.ts';

/** Replicas that a message names; further ones are counted. */
const MAX_NAMED = 3;

/** What requests of a policy get. */
export interface RequestOutcome {
  /** `True`: the policy, or its failurePolicy, answers. `Unknown`: sources differ, or one of them is not known. */
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** What requests get at one place: a verdict of a revision, what a failurePolicy says, or admission without the policy. */
interface RequestAnswer {
  readonly effect: 'judged' | 'rejected' | 'admitted' | 'nothing' | 'unknown';
  readonly text: string;
}

/** What requests get, and from which replicas; none are named for what API servers do by themselves. */
interface Source {
  readonly answer: RequestAnswer;
  readonly replicas: readonly string[];
}

const WITHOUT_POLICY = 'requests are admitted without the policy';
const UNKNOWN: RequestAnswer = { effect: 'unknown', text: 'how requests are answered is not known' };

/** What requests of a policy get, as far as it is known. */
export function requestOutcome(view: AdmissionRolloutView): RequestOutcome {
  if (!isCovered(view)) {
    return uncovered(view);
  }
  const asked = askedReplicas(view.replicas ?? []);
  const said = grouped(asked.flatMap((replica) => sourcesOf(view, replica)));
  const sources = said.length === 0 ? [{ answer: unreached(view), replicas: [] }] : said;
  const effects = new Set(sources.map(({ answer }) => answer.effect));
  const [effect = 'unknown'] = effects;
  if (effects.size > 1 || effect === 'unknown') {
    return unknown(view, sources);
  }
  const message = sources.length === 1 ? (sources[0]?.answer.text ?? '') : sourcesText(view, sources);
  return effect === 'nothing'
    ? { status: 'False', reason: REASONS.notEvaluated, message: `${message}, because no replica evaluates it` }
    : { status: 'True', reason: effect === 'judged' ? REASONS.serving : REASONS.failurePolicy, message };
}

/** API servers send no requests. */
function uncovered(view: AdmissionRolloutView): RequestOutcome {
  const { disarmed } = view.settings;
  if (disarmed !== undefined) {
    return { status: 'False', reason: REASONS.disarmed, message: `${WITHOUT_POLICY}: it is disarmed (${disarmed})` };
  }
  if (!hasServed(view)) {
    const message = `no revision has served so far: ${WITHOUT_POLICY}`;
    return { status: 'False', reason: REASONS.notServedYet, message };
  }
  const isServed = view.replicas?.some((replica) => answersOf(view, replica).some(({ effect }) => effect === 'judged'));
  const isIgnored = isServed !== true && view.settings.degraded === 'Ignore';
  const reason = isIgnored ? REASONS.degradedIgnored : REASONS.switching;
  return { status: 'False', reason, message: 'API servers do not send requests to the policy' };
}

function unknown(view: AdmissionRolloutView, sources: readonly Source[]): RequestOutcome {
  const { replicas = [] } = view;
  const isLost = replicas.some(({ state, isUnready }) => state === 'lost' && isUnready !== true);
  const isUnsaid = sources.some(({ answer }) => answer.effect === 'unknown');
  const reason = !isUnsaid ? REASONS.answersDiffer : isLost ? REASONS.replicaUnreachable : REASONS.answersUnknown;
  return { status: 'Unknown', reason, message: sourcesText(view, sources) };
}

/** Each answer with the replicas that give it. */
function sourcesText(view: AdmissionRolloutView, sources: readonly Source[]): string {
  const isUnknown = ({ answer }: Source): number => (answer.effect === 'unknown' ? 1 : 0);
  const ordered = sources.toSorted((one, other) => isUnknown(one) - isUnknown(other));
  const texts = ordered.map(({ answer, replicas }) => {
    const names = listed(replicas, MAX_NAMED);
    if (answer.effect === 'unknown') {
      return `the answer of ${names} is not known, and where API servers do not reach a replica, ${unreached(view).text}`;
    }
    return names === '' ? answer.text : `${answer.text} (${names})`;
  });
  return texts.join('; ');
}

/** What API servers do when they reach no replica: they apply the failurePolicy of the webhook. */
function unreached(view: AdmissionRolloutView): RequestAnswer {
  const { webhook } = view;
  if (webhook.state !== 'Covered') {
    return UNKNOWN;
  }
  const inForce = servingRevision(view) ?? lastServedRevision(view) ?? view.revisions.at(-1);
  return failurePolicyAnswer(view, inForce, webhook.failurePolicy, '');
}

/** The answers of one replica, as sources. */
function sourcesOf(view: AdmissionRolloutView, replica: ReplicaFacts): readonly Source[] {
  return answersOf(view, replica).map((answer) => ({ answer, replicas: [replica.name] }));
}

/** What a replica answers: more than one while its workers switch. */
function answersOf(view: AdmissionRolloutView, { state, revisions }: ReplicaFacts): readonly RequestAnswer[] {
  if (state !== 'connected' || revisions.size === 0) {
    return [UNKNOWN];
  }
  const answers = [...revisions].flatMap(([number, report]): RequestAnswer[] => {
    const answer = report.answers;
    switch (answer) {
      case 'Verdict':
        return [{ effect: 'judged', text: verdictText(view, number) }];
      case 'Fail':
      case 'Ignore': {
        const revision = view.revisions.find((one) => one.number === number);
        return [failurePolicyAnswer(view, revision, answer, ' with a warning')];
      }
      default:
        return [];
    }
  });
  const isSaid = [...revisions.values()].every((report) => report.answers !== undefined);
  return answers.length > 0 ? answers : [isSaid ? { effect: 'nothing', text: WITHOUT_POLICY } : UNKNOWN];
}

/**
 * The replicas that API servers may send requests to. One that is starting beside others gets none yet, and one whose pod is not
 * ready gets none any more.
 */
function askedReplicas(replicas: readonly ReplicaFacts[]): readonly ReplicaFacts[] {
  const isAnyConnected = replicas.some(({ state }) => state === 'connected');
  return replicas.filter(
    (one) => !isNotReady(one) && one.isUnready !== true && (one.state !== 'connecting' || !isAnyConnected),
  );
}

/** Whether a replica says that API servers do not send it requests yet. */
function isNotReady({ state, revisions }: ReplicaFacts): boolean {
  return state === 'connected' && [...revisions.values()].some(({ answers }) => answers === 'NotReady');
}

function verdictText({ revisions }: AdmissionRolloutView, number: number): string {
  const isMonitored = revisions.find((one) => one.number === number)?.snapshot.mode === 'monitor';
  return `revision ${number} answers requests${isMonitored ? ', and rejects none (mode monitor)' : ''}`;
}

/** @param how what an API server, which gives no warning, does otherwise than a replica */
function failurePolicyAnswer(
  view: AdmissionRolloutView,
  revision: AdmissionRevision | undefined,
  failurePolicy: 'Fail' | 'Ignore' | undefined,
  how: '' | ' with a warning',
): RequestAnswer {
  const of = revision === undefined || revision === desiredRevision(view) ? '' : ` of revision ${revision.number}`;
  if (failurePolicy !== 'Ignore') {
    return { effect: 'rejected', text: `requests are rejected (failurePolicy Fail${of})` };
  }
  const isMonitored = revision?.snapshot.mode === 'monitor' && revision.snapshot.failurePolicy !== 'Ignore';
  const why = isMonitored ? `mode monitor${of}` : `failurePolicy Ignore${of}`;
  return { effect: 'admitted', text: `requests are admitted${isMonitored ? '' : how} (${why})` };
}

/** Equal answers as one source. */
function grouped(sources: readonly Source[]): readonly Source[] {
  const byText = new Map<string, Source>();
  for (const { answer, replicas } of sources) {
    const names = [...(byText.get(answer.text)?.replicas ?? []), ...replicas];
    byText.set(answer.text, { answer, replicas: [...new Set(names)] });
  }
  return [...byText.values()];
}
