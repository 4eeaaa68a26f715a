// Flags of the copies of modules that every controller keeps for policy servers.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type CopySettings, DEFAULT_COPIES_BYTES } from '../../lifecycle/index.ts';
import { portNumber } from '../port-flag.ts';
import { owningPod, processName, requireReachable } from '../process-identity.ts';

const UNITS: Readonly<Record<string, number>> = { Mi: 1024 ** 2, Gi: 1024 ** 3 };
/** The part of the folder that is used, so that the file system has room for a copy that arrives. */
const USED_SHARE = 7 / 8;

export interface CopiesFlags {
  readonly controlAddr: string;
  readonly controlPort: number;
  readonly controlAdvertise?: string;
  readonly controllerName?: string;
  readonly moduleCopies: boolean;
  readonly moduleCopiesDir?: string;
  readonly moduleCopiesSize: number;
}

export function addCopiesFlags(command: Command): Command {
  return command
    .option(
      '--control-addr <address>',
      'address at which policy servers and other controllers get copies of modules',
      '127.0.0.1',
    )
    .option('--control-port <port>', 'port for them, mutual TLS; 0 is any free port', portNumber, 0)
    .addOption(new Option('--control-advertise <host>', 'host of that port for others').env('POD_IP'))
    .addOption(
      new Option('--controller-name <name>', 'name of this process (default: the host’s, with a random end)').env(
        'POD_NAME',
      ),
    )
    .option('--no-module-copies', 'keep none: the module caches of policy servers are on disks that stay')
    .option('--module-copies-dir <folder>', 'folder for copies, of this process only (default: a temporary one)')
    .addOption(
      new Option('--module-copies-size <size>', 'size of that folder, such as 512Mi; an eighth stays free')
        .default(DEFAULT_COPIES_BYTES, `${DEFAULT_COPIES_BYTES / 1024 ** 3}Gi`)
        .argParser(byteSize),
    );
}

/** `durable` if this process keeps no copies. @throws CliError */
export function copySettings(flags: CopiesFlags): CopySettings | 'durable' {
  if (!flags.moduleCopies) {
    return 'durable';
  }
  const { controlAddr: host, controlPort: port, controlAdvertise: advertise, moduleCopiesSize } = flags;
  requireReachable(host, advertise);
  const pod = owningPod();
  return {
    folder: flags.moduleCopiesDir ?? mkdtempSync(join(tmpdir(), 'portcullis-copies-')),
    maxBytes: moduleCopiesSize * USED_SHARE,
    host,
    port,
    ...(advertise === undefined ? {} : { advertise }),
    identity: {
      name: flags.controllerName ?? processName('controller'),
      ...(pod === undefined ? {} : { pod }),
    },
  };
}

function byteSize(text: string): number {
  const [, count = '', unit = ''] = /^([1-9]\d{0,5})(Mi|Gi)$/.exec(text) ?? [];
  const bytes = Number(count) * (UNITS[unit] ?? 0);
  if (bytes === 0) {
    throw new InvalidArgumentError(`expected a size such as 512Mi or 1Gi, got ${text}`);
  }
  return bytes;
}
