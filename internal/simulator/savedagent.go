package simulator

// savedConfig is an agentConfig in the state file.
type savedConfig struct {
	ID           string             `json:"id"`
	Name         string             `json:"name,omitempty"`
	Model        string             `json:"model"`
	Instructions string             `json:"instructions,omitempty"`
	ServiceTier  string             `json:"service_tier"`
	Tools        []savedTool        `json:"tools,omitempty"`
	Reasoning    reasoningConfig    `json:"reasoning"`
	Text         textConfig         `json:"text"`
	MultiAgent   multiAgentConfig   `json:"multi_agent"`
	Compaction   compactionConfig   `json:"compaction"`
	Experimental experimentalConfig `json:"experimental"`
}

type savedTool struct {
	Kind        string `json:"kind"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Parameters  []byte `json:"parameters,omitempty"`
	Async       bool   `json:"async,omitempty"`
	Deferred    bool   `json:"deferred,omitempty"`
	Raw         []byte `json:"raw,omitempty"`
}

func saveConfig(a agentConfig) savedConfig {
	return savedConfig{
		ID: a.id, Name: a.name, Model: a.model, Instructions: a.instructions, ServiceTier: a.serviceTier,
		Tools: each(a.tools, func(t tool) savedTool {
			return savedTool{t.kind, t.name, t.description, t.parameters, t.async, t.deferred, t.raw}
		}),
		Reasoning: a.reasoning, Text: a.text, MultiAgent: a.multiAgent, Compaction: a.compaction,
		Experimental: a.experimental,
	}
}

func (a savedConfig) restore() agentConfig {
	return agentConfig{
		id: a.ID, name: a.Name, model: a.Model, instructions: a.Instructions, serviceTier: a.ServiceTier,
		tools: each(a.Tools, func(t savedTool) tool {
			return tool{t.Kind, t.Name, t.Description, t.Parameters, t.Async, t.Deferred, t.Raw}
		}),
		reasoning: a.Reasoning, text: a.Text, multiAgent: a.MultiAgent, compaction: a.Compaction,
		experimental: a.Experimental,
	}
}

// savedAgent is a reusable agent in the state file.
type savedAgent struct {
	Config    savedConfig       `json:"config"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	CreatedAt int64             `json:"created_at"`
	Updated   int64             `json:"updated_at"`
}

func saveAgent(a storedAgent) savedAgent {
	return savedAgent{Config: saveConfig(a.config), Metadata: a.metadata, CreatedAt: a.createdAt, Updated: a.updated}
}

func (a savedAgent) restore() storedAgent {
	return storedAgent{config: a.Config.restore(), metadata: a.Metadata, createdAt: a.CreatedAt, updated: a.Updated}
}
