// Limits of time and memory for one evaluation. Evaluation is synchronous: all other policies wait until it ends.
import type { TemplateResult } from './templates/index.ts';

/**
 * Maximum time for the templates of one policy. Published policies take some milliseconds; a list of all nodes of the largest
 * clusters, half a second.
 */
const MAX_RENDERING_MS = 1_000;
/** Maximum length of all rendered templates of one policy, which are in memory together. Twenty times the largest object. */
const MAX_RENDERED_CHARACTERS = 32_000_000;
/** Maximum time of an evaluation: half of the time that a leader has to renew its Lease. 20,000 objects take two seconds. */
const MAX_EVALUATION_MS = 5_000;

/** Messages for templates that are not rendered. */
const RENDERING_TOO_LONG = `the templates of the policy take more than ${MAX_RENDERING_MS / 1000} s together: look up fewer objects, or split the policy`;
const RENDERED_TOO_MUCH = `the results of the templates have more than ${MAX_RENDERED_CHARACTERS} characters together: split the policy`;

/** The result of a template that is not rendered because a limit is exceeded. */
interface Exceeded {
  readonly state: 'exceeded';
  readonly message: string;
}

/** The time and memory of one evaluation, over all of its rounds. */
export class EvaluationTime {
  readonly #now: () => number;
  #renderedMs = 0;
  #characters = 0;
  #earlierMs = 0;
  #startedAt: number | undefined;
  #isExceeded = false;

  /** @param now milliseconds. Default: the CPU time of this thread, so that no policy is blamed for a busy machine. */
  constructor(now: () => number = threadCpuMs) {
    this.#now = now;
  }

  /** Whether a limit was exceeded. */
  get isExceeded(): boolean {
    return this.#isExceeded;
  }

  /** Time of all rounds. Milliseconds. */
  get spentMs(): number {
    return this.#earlierMs + (this.#startedAt === undefined ? 0 : this.#now() - this.#startedAt);
  }

  /** Runs one round. */
  round<Result>(evaluate: () => Result): Result {
    this.#startedAt = this.#now();
    try {
      return evaluate();
    } finally {
      this.#earlierMs = this.spentMs;
      this.#startedAt = undefined;
    }
  }

  /** Whether the evaluation must end. */
  isOverdue(): boolean {
    const isOverdue = this.spentMs > MAX_EVALUATION_MS;
    this.#isExceeded ||= isOverdue;
    return isOverdue;
  }

  /** Renders, unless a limit is exceeded. */
  render(render: () => TemplateResult): TemplateResult | Exceeded {
    if (this.#renderedMs > MAX_RENDERING_MS || this.#characters > MAX_RENDERED_CHARACTERS) {
      this.#isExceeded = true;
      const isLate = this.#renderedMs > MAX_RENDERING_MS;
      return { state: 'exceeded', message: isLate ? RENDERING_TOO_LONG : RENDERED_TOO_MUCH };
    }
    const start = this.#now();
    try {
      const result = render();
      this.#characters += result.state === 'resolved' ? JSON.stringify(result.value).length : 0;
      return result;
    } finally {
      this.#renderedMs += this.#now() - start;
    }
  }
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
