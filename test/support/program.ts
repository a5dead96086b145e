/** A program with many lists in memory, for tests of pipes and signals in a separate process. */
import { main } from '../../src/cli/main.js';
import { connectTo, someList } from './fake-deployment.js';

const lists = Array.from({ length: 20_000 }, (_, at) => someList(at + 1));
const connect = connectTo(lists);

process.exitCode = await main({
	connect: async (target, dependencies) => {
		const connection = await connect(target, dependencies);
		if (process.env['HANG'] === undefined) return connection;
		process.stderr.write('hanging\n');
		return new Promise((_, reject) => {
			const alive = setInterval(() => {}, 1000);
			process.once(process.env['HANG'] === 'SIGTERM' ? 'SIGTERM' : 'SIGINT', () => {
				clearInterval(alive);
				reject(new Error('the database is closed'));
			});
		});
	},
});
