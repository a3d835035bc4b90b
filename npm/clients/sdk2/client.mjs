// Drives an MCP server on stdio with the client of the second official SDK.
//
//     node client.mjs '{"command": "loom", "args": [], "mode": "auto", "calls": [{"name": "echo", "arguments": {}}]}'
//
// Prints what it was told as one JSON object: the server, the negotiated revision, the tools, and the results.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const plan = JSON.parse(process.argv[2]);
const transport = new StdioClientTransport({ command: plan.command, args: plan.args, env: process.env, stderr: "inherit" });
const client = new Client({ name: "loom-client-sdk2", version: "1.0.0" }, { versionNegotiation: { mode: plan.mode } });

await client.connect(transport);
try {
  const { tools } = await client.listTools();
  const results = [];
  for (const call of plan.calls) {
    const progress = [];
    const options = call.progress ? { onprogress: (note) => progress.push(note) } : {};
    const result = await client.callTool({ name: call.name, arguments: call.arguments }, options);
    results.push({ ...result, progress });
  }
  console.log(JSON.stringify({
    server: client.getServerVersion(), revision: client.getNegotiatedProtocolVersion(),
    tools: tools.map((tool) => tool.name), results,
  }));
} finally {
  await client.close();
}
