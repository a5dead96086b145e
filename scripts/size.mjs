// Fails when src or test has more lines than the budget in package.json. A commit below the budget lowers it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const { sizeBudget } = JSON.parse(readFileSync('package.json', 'utf8'));
for (const [folder, budget] of Object.entries(sizeBudget)) {
	const lines = readdirSync(folder, { recursive: true })
		.filter((name) => name.endsWith('.ts'))
		.map((name) => readFileSync(join(folder, name), 'utf8').split('\n').length - 1)
		.reduce((sum, count) => sum + count, 0);
	console.log(`${folder}: ${lines} lines of TypeScript, budget ${budget}`);
	if (lines > budget) process.exitCode = 1;
}
