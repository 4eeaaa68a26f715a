// `portcullis requests`: the requests that a policy server on this machine, or in this container, has recorded.
import { connect } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { Command, Option } from 'commander';
import { errorText } from '../../values/index.ts';
import { CliError } from '../errors.ts';
import { REQUESTS_SOCKET } from './requests-socket.ts';

export function requestsCommand(): Command {
  return new Command('requests')
    .description('print the requests that a policy server on this machine has recorded, without secrets')
    .addOption(
      new Option('--requests-socket <path>', 'where the policy server offers them')
        .default(REQUESTS_SOCKET)
        .env('PORTCULLIS_REQUESTS_SOCKET'),
    )
    .addHelpText(
      'after',
      `
A policy server records with --record-requests. For rollout preview --requests.

Examples:
  portcullis requests > requests.json
  kubectl exec -n portcullis deploy/policy-server-default -- portcullis requests > requests.json`,
    )
    .action(requests);
}

async function requests({ requestsSocket }: { readonly requestsSocket: string }): Promise<void> {
  try {
    await pipeline(connect(requestsSocket), process.stdout, { end: false });
  } catch (error) {
    throw new CliError(`no policy server offers requests at ${requestsSocket}: ${errorText(error)}`, {
      hint: 'Does it run with --record-requests, on this machine and as this user?',
      cause: error,
    });
  }
}
