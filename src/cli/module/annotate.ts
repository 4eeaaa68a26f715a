// `portcullis annotate`: writes the metadata of a policy into its module, with the flags of `kwctl annotate`.
import { Command } from 'commander';
import { DEFAULT_TIMEOUT_SECONDS } from '../../engine/definition/index.ts';
import { createGuest, FUEL_PER_SECOND, MAX_ANSWER_BYTES, type PolicyGuest } from '../../engine/index.ts';
import { compilePolicyModule } from '../../modules/compiling/index.ts';
import {
  digestOf,
  type ExecutionMode,
  executionModeOf,
  ModuleError,
  type ModuleInterface,
  type PolicyMetadata,
  readModuleFile,
  requireProtocol,
  writeMetadata,
} from '../../modules/index.ts';
import { LARGEST_MODULE_BYTES } from '../../modules/sources/index.ts';
import { readText } from '../document.ts';
import { CliError, usageError } from '../errors.ts';
import { targetReference } from './module-source.ts';
import { readMetadataFile } from './read-metadata-file.ts';
import { sizeText } from '../output.ts';
import { replaceFile } from '../replace-file.ts';
import { Progress } from '../progress.ts';

/** The annotation for the text of `-u`. */
const USAGE_ANNOTATION = 'io.kubewarden.policy.usage';
interface AnnotateFlags {
  readonly metadataPath: string;
  readonly usagePath?: string;
  readonly outputPath: string;
}

export function annotateCommand(): Command {
  return new Command('annotate')
    .description('write the metadata of a policy into its module')
    .argument('<file>', 'the module')
    .requiredOption('-m, --metadata-path <file>', 'the metadata, YAML or JSON')
    .option(
      '-u, --usage-path <file>',
      `usage of the policy, usually its README.md; becomes the annotation ${USAGE_ANNOTATION}`,
    )
    .requiredOption('-o, --output-path <file>', 'file for the annotated module; may be the module itself')
    .addHelpText(
      'after',
      `
What the metadata do not say is found out: the kind of the module from its imports and exports, the protocol version by
asking it. Rego modules for OPA and for Gatekeeper look the same, so their metadata must say executionMode.

Example:
  portcullis annotate build/policy.wasm -m metadata.yml -u README.md -o policy.wasm`,
    )
    .action(annotate);
}

async function annotate(file: string, flags: AnnotateFlags): Promise<void> {
  const progress = new Progress();
  const reference = targetReference(file);
  if (reference.kind !== 'file') {
    throw usageError(`${file} is not a file`, 'Download it first: annotate works on local files.');
  }
  const [bytes, stated, usage] = await Promise.all([
    readModuleFile(reference, LARGEST_MODULE_BYTES),
    readMetadataFile(flags.metadataPath, progress),
    flags.usagePath === undefined ? undefined : readText(flags.usagePath),
  ]);
  const metadata = completed(file, bytes, stated);
  const annotations =
    usage === undefined ? metadata.annotations : { ...metadata.annotations, [USAGE_ANNOTATION]: usage };
  const annotated = writeMetadata(bytes, { ...metadata, annotations });
  await replaceFile(flags.outputPath, annotated);
  process.stdout.write(
    `Wrote ${flags.outputPath}: ${metadata.executionMode} policy, ${sizeText(annotated.length)}, ${digestOf(annotated)}\n`,
  );
}

/** The metadata, completed by inspecting the module. @throws ModuleError, CliError, WasmError if no policy server would run it */
function completed(file: string, bytes: Uint8Array, stated: PolicyMetadata): PolicyMetadata {
  const compiled = compilePolicyModule(bytes);
  const executionMode = modeOf(file, compiled.shape, stated);
  const guest = createGuest({ compiled, mode: executionMode });
  guest.start();
  const metadata = { ...stated, executionMode };
  if (executionMode !== 'kubewarden-wapc') {
    return metadata;
  }
  if (metadata.protocolVersion !== undefined) {
    requireProtocol(metadata);
    return metadata;
  }
  requireProtocolAnswer(guest);
  return { ...metadata, protocolVersion: 'v1' };
}

/** Asks a waPC module for its protocol version. @throws EngineError, WasmError unless it is v1 */
function requireProtocolAnswer(guest: PolicyGuest): void {
  const fuel = DEFAULT_TIMEOUT_SECONDS * FUEL_PER_SECOND['kubewarden-wapc'];
  const hostCall = (): never => {
    throw new Error('no host capability is available while a module is annotated');
  };
  guest.checkProtocol({ limits: { fuel, answerBytes: MAX_ANSWER_BYTES }, hostCall, log: () => undefined });
}

function modeOf(file: string, module: ModuleInterface, { executionMode }: PolicyMetadata): ExecutionMode {
  try {
    return executionModeOf(module, { metadata: executionMode });
  } catch (error) {
    if (!(error instanceof ModuleError)) {
      throw error;
    }
    const isRego = executionMode === undefined && /Rego/.test(error.message);
    throw new CliError(isRego ? `${file} is a Rego policy, for OPA or for Gatekeeper` : `${file}: ${error.message}`, {
      cause: error,
      ...(isRego ? { hint: 'Add "executionMode: opa" or "executionMode: gatekeeper" to the metadata.' } : {}),
    });
  }
}
