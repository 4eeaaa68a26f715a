// What the command line and the thread that runs modules for it say to each other. Plain data.
import type { MessagePort } from 'node:worker_threads';
import type { JsonObject, Observation, PolicyDefinition, PolicyLogEntry, Route, Verdict } from '../../engine/index.ts';
import type { BuiltinName, ExecutionMode } from '../../modules/index.ts';
import type { ModuleShape } from '../../wasm/index.ts';

/** A module to be loaded: WebAssembly, or a part of this product. */
export type ModuleInput =
  | {
      readonly bytes: Uint8Array;
      /** The kind that the user chose, when the metadata do not say. */
      readonly chosenMode?: ExecutionMode;
    }
  | { readonly builtin: BuiltinName }
  /** Kubernetes' own policies, for a minor version of an API server. */
  | { readonly manifests: readonly JsonObject[]; readonly kubernetesVersion?: number };

/** A policy, its code and a request for it. */
export interface PolicyJob {
  readonly definition: PolicyDefinition;
  /** By the reference that the definition uses. */
  readonly modules: Readonly<Record<string, ModuleInput>>;
  /** The body of an admission review, or of a raw one. */
  readonly body: Uint8Array;
  readonly route: Route;
  /** Text of a recorded session that answers host capabilities. */
  readonly session?: string;
}

/** Many questions to one policy under several settings: each module is loaded once, settings are checked once. */
export interface SuiteJob {
  /** By the reference that the definitions use. */
  readonly modules: Readonly<Record<string, ModuleInput>>;
  readonly variants: readonly SuiteVariant[];
}

/** A policy with its settings, and what it is asked. */
export interface SuiteVariant {
  readonly definition: PolicyDefinition;
  readonly questions: readonly SuiteQuestion[];
}

/** A question of a suite. */
export interface SuiteQuestion {
  /** Names the question in answers. */
  readonly index: number;
  /** Without a request, only the settings are looked at. */
  readonly request?: { readonly body: Uint8Array; readonly route: Route };
  /** Text of a recorded session that answers host capabilities. */
  readonly session?: string;
}

/** The answer to a question of a suite. */
export type SuiteAnswer =
  | { readonly kind: 'verdict'; readonly verdict: Verdict }
  /** The settings are good, and nothing else was asked. */
  | { readonly kind: 'settings-accepted' }
  | { readonly kind: 'settings-rejected'; readonly message: string }
  /** The policy gave no verdict, or one that cannot be trusted. */
  | { readonly kind: 'failed'; readonly message: string };

/** Something to be done with modules. */
export type ModuleJob =
  | { readonly task: 'inspect'; readonly bytes: Uint8Array }
  /** Ask a waPC module whether it speaks the protocol. */
  | { readonly task: 'protocol'; readonly bytes: Uint8Array }
  | {
      readonly task: 'run';
      readonly policy: PolicyJob;
      readonly record: boolean;
      /** Policies and members that are answered as timed out. */
      readonly timedOut: readonly string[];
    }
  | { readonly task: 'bench'; readonly policy: PolicyJob; readonly iterations?: number; readonly durationMs: number }
  | { readonly task: 'test'; readonly suite: SuiteJob };

/** What the sandbox makes of a module. */
export interface Inspection {
  readonly shape: ModuleShape;
  /** Undefined when it cannot be told. */
  readonly mode: ExecutionMode | undefined;
  /** The host's builtins that a Rego module uses; undefined for others, and where they cannot be told. */
  readonly builtins: readonly string[] | undefined;
  /** Why it cannot be run. */
  readonly problem: string | undefined;
}

/** The evaluation of one request, or why the bytes are none. */
export type Evaluated =
  | { readonly uid: string; readonly verdict: Verdict; readonly observation: Observation; readonly refused?: never }
  | { readonly refused: string };

/** The answer to one request. */
export interface RunResult {
  readonly evaluated: Evaluated;
  /** What was asked and answered, when that was to be recorded. */
  readonly session?: string;
  /** What users should know, one sentence each. */
  readonly notes: readonly string[];
}

/** Times of evaluations, in milliseconds. */
export interface BenchResult extends RunResult {
  readonly warmUpEvaluations: number;
  readonly evaluations: number;
  readonly totalMs: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Results by task. */
export interface JobResults {
  readonly inspect: Inspection;
  readonly protocol: { readonly version: 'v1' };
  readonly run: RunResult;
  readonly bench: BenchResult;
  /** Answers were told one by one. */
  readonly test: { readonly notes: readonly string[] };
}

/** What a guest was doing when its time was over. */
export type GuestStage = 'loading' | 'checking its settings' | 'evaluating';

/** From the thread. */
export type FromModuleThread =
  /** A guest starts; it has so long. */
  | { readonly type: 'guest'; readonly stage: GuestStage; readonly unit: string; readonly timeoutMs: number }
  | { readonly type: 'log'; readonly entry: PolicyLogEntry }
  /** A host capability; the thread sleeps until it is answered. */
  | { readonly type: 'ask'; readonly capability: string; readonly payload: string }
  /** A question of a suite is answered. */
  | { readonly type: 'answer'; readonly index: number; readonly answer: SuiteAnswer; readonly durationMs: number }
  | { readonly type: 'done'; readonly result: JobResults[keyof JobResults] }
  | { readonly type: 'failed'; readonly failure: JobFailure };

/** Why a job has no result. */
interface JobFailure {
  /** `settings-refused`, or the code of the error. */
  readonly code: string;
  readonly message: string;
}

/** The answer to a question about a host capability. */
export type CapabilityReply = { readonly payload: string } | { readonly error: string };

/** Given to the thread when it starts. */
export interface ModuleThreadStart {
  /** Where compiled code of this program is kept. */
  readonly compileCache: string;
  /** Answers to questions arrive here. */
  readonly answers: MessagePort;
  /** One when an answer has been sent. */
  readonly answered: SharedArrayBuffer;
}
